"""Rows in plain columns, as wide as what stands in them, or as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from kafkacompat.cli.log_lines import CONTROLS
from kafkacompat.storage.inspection.rows import PROBLEM, Row

ROWS_A_TABLE = 1000
CHARACTERS_A_TABLE = 1 << 20
"""So many rows, or so much text, decide together how wide the columns are; the next ones do it anew."""

MOST_WIDTH = 200
"""Wider texts stand out of their columns: one of a megabyte must not fill a thousand lines with spaces."""

Write = Callable[[str], None]


def write_columns(rows: Iterable[Row], write: Write, warn: Write) -> None:
    """Write a table for each run of rows of one kind; problems go to *warn*."""
    for _, run in groupby(rows, key=lambda row: (row.kind, tuple(row.fields))):
        for table in _tables(run):
            if table[0].kind == PROBLEM:
                for row in table:
                    warn(visible(str(row.fields["what"])))
            else:
                _write_table(table, write)


def _tables(run: Iterable[Row]) -> Iterator[list[Row]]:
    table: list[Row] = []
    characters = 0
    for row in run:
        table.append(row)
        characters += sum(len(str(value)) for value in row.fields.values() if isinstance(value, (str, list)))
        if len(table) == ROWS_A_TABLE or characters >= CHARACTERS_A_TABLE:
            yield table
            table, characters = [], 0
    if table:
        yield table


def _write_table(table: Sequence[Row], write: Write) -> None:
    names = list(table[0].fields)
    lines = [names, *([_cell(row.fields[name]) for name in names] for row in table)]
    widths = [min(max(map(len, column)), MOST_WIDTH) for column in zip(*lines, strict=True)]
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
    """Text in which control characters show by their names: it may come from clients, and goes to a terminal.

    So do bytes of a file's name that are no UTF-8.
    """
    return text.translate(CONTROLS).encode("utf-8", "backslashreplace").decode()


def write_json(path: str, rows: Iterable[Row], write: Write) -> None:
    """Write each row as an object in a line of its own, with the file it is of and its kind."""
    for row in rows:
        write(json.dumps({"file": path, "kind": row.kind, **row.fields}))
