"""Comparing the records of a topic with what a test expects, and showing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from kafkacompat.testing.rows import NO_PARTITION, Record, Row, read_row

Expected: TypeAlias = "Row | Callable[[Record], bool]"

SHOWN = 20
"""Records that a message shows."""
SHOWN_BYTES = 60
"""Bytes of a key or a value that a message shows."""


def find_missing(expected: Iterable[Expected], records: Sequence[Record]) -> list[str]:
    """Return the rows that no record matches, as texts; each record matches one row.

    The rows that give most choose first, and functions last: the others have more records to choose from.
    """
    rows, rest = list(expected), list(records)
    missing: list[int] = []
    for number in sorted(range(len(rows)), key=lambda number: -_count_given(rows[number])):
        row = rows[number]
        matches = row if callable(row) else make_match(row)
        position = next((index for index, record in enumerate(rest) if matches(record)), None)
        if position is None:
            missing.append(number)
        else:
            del rest[position]
    return [repr(rows[number]) for number in sorted(missing)]


def _count_given(row: Expected) -> int:
    """Return how many fields of a record a row compares; 0 for a function, as nothing is known of it."""
    if callable(row):
        return 0
    return len(row) if isinstance(row, Mapping | tuple) else 1


def make_match(row: Row) -> Callable[[Record], bool]:
    """Return the function that compares a record with what a row gives; raises BrokerError for a row of another form."""
    new = read_row(row)
    given = set(row) if isinstance(row, Mapping) else {"key", "value"} if isinstance(row, tuple) else {"value"}

    def matches(record: Record) -> bool:
        return (
            ("key" not in given or record.key == new.key)
            and ("value" not in given or record.value == new.value)
            and ("headers" not in given or record.headers == new.headers)
            and (new.partition in (NO_PARTITION, record.partition))
            and (new.timestamp_ms in (None, record.timestamp_ms))
        )

    return matches


def describe_records(records: Sequence[Record]) -> str:
    """Return the first records as lines, the number of the others, or a word on their absence."""
    if not records:
        return ": it is empty"
    lines = [f"  {record.partition}@{record.offset}: {_show(record)}" for record in records[:SHOWN]]
    if len(records) > SHOWN:
        lines.append(f"  and {len(records) - SHOWN} more")
    return ":\n" + "\n".join(lines)


def _show(record: Record) -> str:
    headers = f" headers {record.headers!r:.{SHOWN_BYTES}}" if record.headers else ""
    key = "" if record.key is None else f"key {_shorten(record.key)} "
    return f"{key}value {_shorten(record.value)}{headers}"


def _shorten(content: bytes | None) -> str:
    if content is None or len(content) <= SHOWN_BYTES:
        return repr(content)
    return f"{content[:SHOWN_BYTES]!r} and {len(content) - SHOWN_BYTES} bytes more"
