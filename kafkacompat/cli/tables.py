"""Tables for a terminal, by rich; `kafkacompat.cli.columns` writes plain ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kafkacompat.cli.columns import escape_control_characters, holds_numbers

WIDTH_WITHOUT_TERMINAL = 160

Style = Callable[[object], str]
"""Returns the style of a cell by its value, as rich names it; an empty text for none."""


def make_console() -> Console:
    """Return a console that is wide enough where standard output is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH_WITHOUT_TERMINAL)


def make_table(title: str, rows: Sequence[Mapping[str, object]], styles: Mapping[str, Style] | None = None) -> Table:
    """Return a table with a column for each key of the rows; *styles* colours the cells of some columns."""
    styles = styles or {}
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in rows[0] if rows else ():
        is_number = holds_numbers(row[name] for row in rows)
        table.add_column(name, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for row in rows:
        table.add_row(*(_make_cell(value, styles.get(name)) for name, value in row.items()))
    return table


def _make_cell(value: object, style: Style | None) -> Text:
    # Names come from clients: neither markup nor control characters in them have an effect.
    text = escape_control_characters("" if value is None else str(value))
    return Text(text, style=style(value) if style else "")
