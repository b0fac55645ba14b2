"""Rows in plain columns, as wide as what stands in them, or as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice

from kafkacompat.cli.log_lines import CONTROLS
from kafkacompat.storage.inspection.rows import PROBLEM, Row

ROWS_A_TABLE = 1000
"""So many rows decide together how wide the columns are; the next ones do it anew."""

Write = Callable[[str], None]


def write_columns(rows: Iterable[Row], write: Write, warn: Write) -> None:
    """Write a table for each run of rows of one kind; problems go to *warn*."""
    for _, run in groupby(rows, key=lambda row: (row.kind, tuple(row.fields))):
        while table := list(islice(run, ROWS_A_TABLE)):
            if table[0].kind == PROBLEM:
                for row in table:
                    warn(visible(str(row.fields["what"])))
            else:
                _write_table(table, write)


def _write_table(table: Sequence[Row], write: Write) -> None:
    names = list(table[0].fields)
    lines = [names, *([_cell(row.fields[name]) for name in names] for row in table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [isinstance(table[0].fields[name], int) for name in names]
    for line in lines:
        cells = zip(line, widths, right, strict=True)
        write(
            "  ".join(text.rjust(width) if to_right else text.ljust(width) for text, width, to_right in cells).rstrip()
        )
    write("")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, dict)):
        return visible(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return visible(str(value))


def visible(text: str) -> str:
    """Text in which control characters show by their names: it may come from clients, and goes to a terminal."""
    return text.translate(CONTROLS)


def write_json(path: str, rows: Iterable[Row], write: Write) -> None:
    """Write each row as an object in a line of its own, with the file it is of and its kind."""
    for row in rows:
        write(json.dumps({"file": path, "kind": row.kind, **row.fields}))
