"""The records that every client writes and has to get back, and how the two are compared.

Record *n* is known by its number alone; the drivers in `clients/` make the same texts by the same rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

KEYS = 50
FILL = "x" * 100
RECORDS_A_HEADER = 100
"""Neighbours share a header: a client that sets headers for a whole call (kcat) needs ten calls, not a thousand."""

CONTENTS, HEADERS, TIMESTAMPS = "contents", "headers", "timestamps"


class Record(NamedTuple):
    """One record as a driver reports it; None for fields that the client lacks."""

    partition: int
    offset: int
    key: str | None
    value: str | None
    timestamp: int | None = None
    header: str | None = None


def make_key(number: int) -> str:
    """Return record *number*'s key."""
    return f"key-{number % KEYS}"


def make_value(number: int) -> str:
    """Return record *number*'s value."""
    return f"value-{number}-{FILL}"


def make_header(number: int) -> str:
    """Return the value of record *number*'s header ``n``."""
    return f"header-{number // RECORDS_A_HEADER}"


def number_of(record: Record) -> int:
    """Return a record's number; -1 for a value that is not the programme's."""
    words = (record.value or "").split("-")
    return int(words[1]) if len(words) == 3 and words[1].isdigit() else -1


def compare_records(got: Sequence[Record], first: int, count: int, base_timestamp: int) -> dict[str, str]:
    """Return the problems of the records *first* to *first* + *count* - 1 as read back: aspect -> in words.

    Where the contents are wrong, headers and timestamps are not checked.
    """
    if wrong := _check_contents(got, first, count):
        return {CONTENTS: wrong}
    problems = {
        HEADERS: _check_each(got, "header", make_header),
        TIMESTAMPS: _check_each(got, "timestamp", lambda number: base_timestamp + number),
    }
    return {aspect: problem for aspect, problem in problems.items() if problem}


def _check_contents(got: Sequence[Record], first: int, count: int) -> str:
    return (
        _check_each(got, "value", make_value)
        or _check_each(got, "key", make_key)
        or _all_there(got, first, count)
        or _check_order(got)
    )


def _check_each(got: Iterable[Record], name: str, expected: Callable[[int], object]) -> str:
    for record in got:
        number, held = number_of(record), getattr(record, name)
        if held != expected(number):
            return f"record {number} has {name} {_shorten(held)}, not {_shorten(expected(number))}"
    return ""


def _all_there(got: Sequence[Record], first: int, count: int) -> str:
    numbers = [number_of(record) for record in got]
    missing = set(range(first, first + count)) - set(numbers)
    strange = set(numbers) - set(range(first, first + count))
    if missing:
        return f"{len(missing)} of {count} records are missing, the first is {min(missing)}"
    if strange:
        return f"{len(strange)} records of others came too, the first is {min(strange)}"
    return f"{len(numbers) - count} records came twice" if len(numbers) > count else ""


def _check_order(got: Sequence[Record]) -> str:
    partitions: dict[int, list[Record]] = defaultdict(list)
    for record in got:
        partitions[record.partition].append(record)
    for partition, records in partitions.items():
        offsets, numbers = [record.offset for record in records], [number_of(record) for record in records]
        if offsets != sorted(set(offsets)):
            return f"partition {partition}: offsets do not ascend"
        if numbers != sorted(numbers):
            return f"partition {partition}: records are not in the order in which they were sent"
    return _keys_stay(got)


def _keys_stay(got: Sequence[Record]) -> str:
    homes: dict[str | None, set[int]] = defaultdict(set)
    for record in got:
        homes[record.key].add(record.partition)
    torn = [key for key, partitions in homes.items() if len(partitions) > 1]
    return f"{torn[0]} is in {len(homes[torn[0]])} partitions" if torn else ""


def _shorten(held: object) -> str:
    words = repr(held)
    return words if len(words) <= 40 else f"{words[:37]}..."
