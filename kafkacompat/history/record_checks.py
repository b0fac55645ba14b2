"""The checks of values, of the reads of consumers, and of the ends of partitions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from kafkacompat.history.events import ISOLATIONS, READ_UNCOMMITTED, HistoryPartition, Isolation
from kafkacompat.history.index import History, ReaderRun, RecordedValue, split_client_name
from kafkacompat.history.lower_bounds import LowerBounds


def find_lost(history: History) -> Iterator[str]:
    final_values = {of: set(records.values()) for of, records in history.final.items()}
    for text, value in history.values.items():
        for isolation in ISOLATIONS:
            if (
                value.must_be_read(isolation)
                and text not in final_values[isolation, value.place]
                and history.reaches(isolation, value.place, value.offset)
            ):
                yield f"{text} was acknowledged at offset {value.offset} of {value.place}, but {isolation} does not find it"


def find_vanished(history: History) -> Iterator[str]:
    for run in history.runs:
        for isolation in ISOLATIONS:
            kept = history.final.get((isolation, run.place), {})
            for offset, text in run.records:
                if (
                    offset not in kept
                    and _must_be_shown(history, run, text, isolation)
                    and history.reaches(isolation, run.place, offset)
                ):
                    yield (
                        f"{run.client} read {text} at offset {offset} of {run.place}, "
                        f"but in the end {isolation} finds nothing there"
                    )


def _must_be_shown(history: History, run: ReaderRun, text: str, isolation: Isolation) -> bool:
    """Return whether readers at an isolation level must get a value that another reader got."""
    if isolation in (READ_UNCOMMITTED, run.isolation):
        return True
    value = history.values.get(text)
    return value is not None and value.transaction is None


def find_unknown(history: History) -> Iterator[str]:
    for run in history.runs:
        for offset, text in run.records:
            value = history.values.get(text)
            if value is None:
                yield f"{run.client} read {text!r} at offset {offset} of {run.place}, which no client sent"
            elif value.place != run.place:
                yield f"{run.client} read {text} at offset {offset} of {run.place}, but it was sent to {value.place}"


def _list_observations(history: History) -> Iterator[tuple[str, HistoryPartition, int, str]]:
    """Yield (client, partition, offset, value) of every acknowledgement and every read."""
    for text, value in history.values.items():
        if value.offset >= 0:
            yield value.client, value.place, value.offset, text
    for run in history.runs:
        for offset, text in run.records:
            yield run.client, run.place, offset, text


def find_different(history: History) -> Iterator[str]:
    known: dict[tuple[HistoryPartition, int], tuple[str, str]] = {}
    for client, place, offset, text in _list_observations(history):
        other, first = known.setdefault((place, offset), (client, text))
        if text != first:
            yield f"offset {offset} of {place} is {first} for {other}, but {text} for {client}"


def find_doubled(history: History) -> Iterator[str]:
    known: dict[str, int] = {}
    for client, place, offset, text in _list_observations(history):
        first = known.setdefault(text, offset)
        if offset != first:
            yield f"{text} is at offset {first} of {place}, and again at offset {offset} for {client}"
            known[text] = offset


def find_out_of_order(history: History) -> Iterator[str]:
    for (isolation, place), records in history.final.items():
        last: dict[str, tuple[tuple[int, int], str]] = {}
        for offset, text in sorted(records.items()) if isolation == READ_UNCOMMITTED else ():
            if (value := history.values.get(text)) is None:
                continue
            producer, position = _find_sending_order(value)
            before, other = last.get(producer, (position, text))
            if position < before:
                yield f"{text} is at offset {offset} of {place}, after {other}"
            last[producer] = position, text


def _find_sending_order(value: RecordedValue) -> tuple[str, tuple[int, int]]:
    """Return the producer of a value, and the value's position in the order of sending.

    In transactions, the clients of one identity are one producer: a replacement begins when the last transaction has ended.
    """
    if value.transaction is None:
        return value.client, (0, value.number)
    identity, incarnation = split_client_name(value.client)
    return identity, (incarnation, value.number)


def find_backwards(history: History) -> Iterator[str]:
    for run in history.runs:
        last = -1 if run.start is None else run.start - 1
        for offset, text in run.records:
            if offset <= last:
                yield f"{run.client} read {text} at offset {offset} of {run.place} after offset {last}"
            last = offset


def find_skipped(history: History) -> Iterator[str]:
    orders = {of: sorted(records) for of, records in history.final.items()}
    for run in history.runs:
        order = orders.get((run.isolation, run.place), [])
        last = None if run.start is None else run.start - 1
        for offset in _list_visited_offsets(run):
            missed = 0 if last is None else bisect_left(order, offset) - bisect_right(order, last)
            if missed > 0:
                yield f"{run.client} went from offset {last} of {run.place} to {offset}, without {missed} between them"
            last = offset


def _list_visited_offsets(run: ReaderRun) -> Iterator[int]:
    yield from (offset for offset, _ in run.records)
    if run.end is not None:
        yield run.end


def find_stuck(history: History) -> Iterator[str]:
    for finished in history.followed:
        if finished.offset < finished.end_offset:
            yield (
                f"{finished.client}, with {finished.isolation}, reached only offset {finished.offset} of {finished.place}, "
                f"which ends at {finished.end_offset}"
            )


# Ends


def find_ends_going_back(history: History) -> Iterator[str]:
    known = {of: LowerBounds(bounds) for of, bounds in _collect_end_bounds(history).items()}
    for listed in history.listed:
        floor = known[listed.isolation, listed.place].at(listed.asked_ns)
        if listed.end_offset < floor:
            yield (
                f"{listed.client} received the end {listed.end_offset} of {listed.place} for {listed.isolation}, "
                f"after it was known to be at least {floor}"
            )


def _collect_end_bounds(history: History) -> dict[tuple[Isolation, HistoryPartition], list[tuple[int, int]]]:
    """Collect (time, least end from then on) of each partition, for readers at each isolation level."""
    ends: dict[tuple[Isolation, HistoryPartition], list[tuple[int, int]]] = defaultdict(list)
    for listed in history.listed:
        ends[listed.isolation, listed.place].append((listed.time_ns, listed.end_offset))
    for value in history.values.values():
        if value.acknowledged_ns is not None:
            ends[READ_UNCOMMITTED, value.place].append((value.acknowledged_ns, value.offset + 1))
    for run in history.runs:
        for count, time_ns in run.times_ns:
            for isolation in {READ_UNCOMMITTED, run.isolation} if count else ():
                ends[isolation, run.place].append((time_ns, run.records[count - 1][0] + 1))
    return ends
