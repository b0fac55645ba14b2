"""What a client has read of a topic, beside what it should have read: the difference in words, "" for none."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from compat_tests.matrix.records import Record
from kafkacompat.testing.nasty import ExpectedRecord, MissingOffsets


class Reading(NamedTuple):
    """One record as it is compared: clients report a null as "" or None."""

    partition: int
    offset: int
    key: str
    value: str


def as_reading(record: Record | ExpectedRecord) -> Reading:
    """Return a record as it is compared."""
    return Reading(record.partition, record.offset, _as_text(record.key), _as_text(record.value))


def _as_text(content: bytes | str | None) -> str:
    if isinstance(content, bytes):
        return content.decode()
    return content or ""


def compare(
    read: Sequence[Record],
    expected: Sequence[ExpectedRecord],
    *,
    has_timestamps: bool,
    missing: Sequence[MissingOffsets] = (),
) -> str:
    """Return how the records that a client read differ from those that it should have read.

    A record at an offset that is *missing* on purpose is named with the reason.
    """
    wanted, got = [as_reading(record) for record in expected], [as_reading(record) for record in read]
    problems = [*_compare_contents(got, wanted, missing), *_compare_order(got)]
    if not problems and has_timestamps:
        problems += _compare_timestamps(read, expected)
    return "; ".join(problems)


def _compare_contents(
    got: Sequence[Reading], wanted: Sequence[Reading], on_purpose: Sequence[MissingOffsets]
) -> Iterable[str]:
    by_place = {(reading.partition, reading.offset): reading for reading in wanted}
    places = Counter((reading.partition, reading.offset) for reading in got)
    if missing := [place for place in by_place if place not in places]:
        yield f"{_count(missing)} missing, the first at {_name(*missing[0])}"
    if strange := sorted(place for place in places if place not in by_place):
        yield f"{_count(strange)} too many, the first at {_name(*strange[0])}{_explain(strange[0], on_purpose)}"
    if twice := sorted(place for place, count in places.items() if count > 1):
        yield f"{_count(twice)} twice, the first at {_name(*twice[0])}"
    wrong = [reading for reading in got if by_place.get((reading.partition, reading.offset), reading) != reading]
    if wrong:
        yield f"{_count(wrong)} with other contents, the first at {_name(wrong[0].partition, wrong[0].offset)}"


def _compare_order(got: Sequence[Reading]) -> Iterable[str]:
    offsets: dict[int, list[int]] = defaultdict(list)
    for reading in got:
        offsets[reading.partition].append(reading.offset)
    if torn := [partition for partition, listed in offsets.items() if listed != sorted(listed)]:
        yield f"offsets of partition {torn[0]} do not ascend"


def _compare_timestamps(read: Sequence[Record], expected: Sequence[ExpectedRecord]) -> Iterable[str]:
    wanted = {(record.partition, record.offset): record.timestamp for record in expected}
    wrong = [
        (record, wanted[record.partition, record.offset])
        for record in read
        if _as_timestamp(record.timestamp) != wanted[record.partition, record.offset]
    ]
    if wrong:
        record, timestamp = wrong[0]
        where = _name(record.partition, record.offset)
        yield f"{_count(wrong)} with another timestamp: {record.timestamp} instead of {timestamp} at {where}"


def _as_timestamp(timestamp: int | None) -> int:
    # Clients in Go report the beginning of their time, of the year 1.
    return -1 if timestamp is None or timestamp < 0 else timestamp


def _explain(place: tuple[int, int], on_purpose: Sequence[MissingOffsets]) -> str:
    partition, offset = place
    reasons = [gap.reason for gap in on_purpose if gap.partition == partition and gap.first <= offset <= gap.last]
    return f" ({reasons[0]})" if reasons else ""


def _count(items: Sequence[object]) -> str:
    return f"{len(items)} record{'s' * (len(items) != 1)}"


def _name(partition: int, offset: int) -> str:
    return f"offset {offset}" + (f" of partition {partition}" if partition else "")
