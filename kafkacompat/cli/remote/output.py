"""The output of commands: a table in a terminal, aligned columns in a pipe, or one line of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from kafkacompat.cli.columns import escape_control_characters, write_table

if TYPE_CHECKING:
    from kafkacompat.cli.tables import Style

MOST_RICH_ROWS = 1000
"""More rows are written as plain columns in a terminal too, because rich takes 0.2 ms for each."""

Row = Mapping[str, object]


class Output:
    """Writes results to standard output, and sentences to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def write_rows(
        self, rows: Sequence[Row], empty: str, title: str = "", styles: Mapping[str, Style] | None = None
    ) -> None:
        """Write rows that all have the same fields; without rows, the sentence *empty* in place of a table."""
        if self.as_json:
            self.write_json(rows)
        elif not rows:
            self.report(empty)
        elif sys.stdout.isatty() and len(rows) <= MOST_RICH_ROWS:
            from kafkacompat.cli.tables import make_console, make_table

            # A terminal is narrow: columns without a single value are left out.
            names = [name for name in rows[0] if any(row[name] not in (None, "") for row in rows)]
            shown = [{name.replace("_", " "): _join(row[name]) for name in names} for row in rows]
            spaced = {name.replace("_", " "): style for name, style in (styles or {}).items()}
            make_console().print(make_table(title, shown, spaced))
        else:
            if title:
                self.write_line(title)
            plain = [{name.replace(" ", "_"): _join(value) for name, value in row.items()} for row in rows]
            write_table(plain, click.echo)

    def write_json(self, value: object) -> None:
        """Write a value as one line of JSON."""
        click.echo(json.dumps(value))

    def write_line(self, text: str) -> None:
        """Write a line to standard output."""
        click.echo(escape_control_characters(text))

    def report(self, sentence: str) -> None:
        """Write a sentence to standard error."""
        click.echo(escape_control_characters(sentence), err=True)

    def complain(self, sentence: str) -> None:
        """Write what is wrong to standard error."""
        self.report(f"kafkacompat: {sentence}")


def _join(value: object) -> object:
    """Return a list as a text."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value
