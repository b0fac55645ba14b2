"""Rows as plain columns, as wide as their contents, or as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from kafkacompat.cli.log_lines import CONTROLS

if TYPE_CHECKING:
    from kafkacompat.storage.inspection.rows import DumpRow

ROWS_A_TABLE = 1000
CHARACTERS_A_TABLE = 1 << 20
"""A table ends after this many rows or characters; the next rows begin a table with widths of its own."""

MOST_WIDTH = 200
"""Largest width of a column. A longer text overflows it: a text of a megabyte must not fill a thousand lines with spaces."""

Write = Callable[[str], None]


def write_columns(rows: Iterable[DumpRow], write: Write, warn: Write) -> None:
    """Write a table for each run of rows of one kind; problems go to *warn*."""
    # Commands without rows of files do not pay for this module.
    from kafkacompat.storage.inspection.rows import PROBLEM

    for _, run in groupby(rows, key=lambda row: (row.kind, tuple(row.fields))):
        for table in _split_tables(run):
            if table[0].kind == PROBLEM:
                for row in table:
                    warn(escape_control_characters(str(row.fields["what"])))
            else:
                write_table([row.fields for row in table], write)
                write("")


def _split_tables(run: Iterable[DumpRow]) -> Iterator[list[DumpRow]]:
    table: list[DumpRow] = []
    characters = 0
    for row in run:
        table.append(row)
        characters += sum(len(str(value)) for value in row.fields.values() if isinstance(value, (str, list)))
        if len(table) == ROWS_A_TABLE or characters >= CHARACTERS_A_TABLE:
            yield table
            table, characters = [], 0
    if table:
        yield table


def write_table(rows: Sequence[Mapping[str, object]], write: Write) -> None:
    """Write the names of the columns and the rows, at least one, which all have these columns."""
    names = list(rows[0])
    lines = [names, *([_format_cell(row[name]) for name in names] for row in rows)]
    widths = [min(max(map(len, column)), MOST_WIDTH) for column in zip(*lines, strict=True)]
    right = [holds_numbers(row[name] for row in rows) for name in names]
    for line in lines:
        cells = zip(line, widths, right, strict=True)
        write(
            "  ".join(text.rjust(width) if to_right else text.ljust(width) for text, width, to_right in cells).rstrip()
        )


def holds_numbers(cells: Iterable[object]) -> bool:
    """Return whether a column has numbers, and nothing else but cells without a value."""
    given = [cell for cell in cells if cell is not None]
    return bool(given) and all(isinstance(cell, int) for cell in given)


def _format_cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, dict)):
        return escape_control_characters(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return escape_control_characters(str(value))


def escape_control_characters(text: str) -> str:
    """Replace control characters by their names, because the text may come from clients and goes to a terminal.

    Bytes of a file's name that are not UTF-8 are replaced as well.
    """
    return text.translate(CONTROLS).encode("utf-8", "backslashreplace").decode()


def write_json(path: str, rows: Iterable[DumpRow], write: Write) -> None:
    """Write each row as one line with a JSON object, which also names the row's file and kind."""
    for row in rows:
        write(json.dumps({"file": path, "kind": row.kind, **row.fields}))
