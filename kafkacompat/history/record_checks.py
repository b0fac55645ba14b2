"""What must hold of values, of those who read them, and of the ends of partitions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from kafkacompat.history.events import ISOLATIONS, READ_UNCOMMITTED, Isolation, Place
from kafkacompat.history.floor import Floor
from kafkacompat.history.index import History, Run, Value, incarnation_of


def lost(history: History) -> Iterator[str]:
    found = {of: set(records.values()) for of, records in history.final.items()}
    for text, value in history.values.items():
        for isolation in ISOLATIONS:
            if (
                value.must_be_read(isolation)
                and text not in found[isolation, value.place]
                and history.reaches(isolation, value.place, value.offset)
            ):
                yield f"{text} is stored in {value.place}, at offset {value.offset}, but {isolation} does not find it"


def vanished(history: History) -> Iterator[str]:
    for run in history.runs:
        for isolation in ISOLATIONS:
            kept = history.final.get((isolation, run.place), {})
            for offset, text in run.records:
                if (
                    offset not in kept
                    and _is_shown(history, run, text, isolation)
                    and history.reaches(isolation, run.place, offset)
                ):
                    yield (
                        f"{run.client} read {text} at offset {offset} of {run.place}, "
                        f"where in the end {isolation} finds nothing"
                    )


def _is_shown(history: History, run: Run, text: str, isolation: Isolation) -> bool:
    """Whether what a reader was given must be given to readers at an isolation."""
    if isolation in (READ_UNCOMMITTED, run.isolation):
        return True
    value = history.values.get(text)
    return value is not None and value.transaction is None


def unknown(history: History) -> Iterator[str]:
    for run in history.runs:
        for offset, text in run.records:
            value = history.values.get(text)
            if value is None:
                yield f"{run.client} read {text!r} at offset {offset} of {run.place}, which nobody sent"
            elif value.place != run.place:
                yield f"{run.client} read {text} at offset {offset} of {run.place}, but it was sent to {value.place}"


def _seen(history: History) -> Iterator[tuple[str, Place, int, str]]:
    """(who, partition, offset, value) of all that was told of offsets."""
    for text, value in history.values.items():
        if value.offset >= 0:
            yield value.client, value.place, value.offset, text
    for run in history.runs:
        for offset, text in run.records:
            yield run.client, run.place, offset, text


def different(history: History) -> Iterator[str]:
    known: dict[tuple[Place, int], tuple[str, str]] = {}
    for who, place, offset, text in _seen(history):
        other, first = known.setdefault((place, offset), (who, text))
        if text != first:
            yield f"offset {offset} of {place} is {first} for {other}, but {text} for {who}"


def doubled(history: History) -> Iterator[str]:
    known: dict[str, int] = {}
    for who, place, offset, text in _seen(history):
        first = known.setdefault(text, offset)
        if offset != first:
            yield f"{text} is at offset {first} of {place}, and again at offset {offset} ({who})"
            known[text] = offset


def out_of_order(history: History) -> Iterator[str]:
    for (isolation, place), records in history.final.items():
        last: dict[str, tuple[tuple[int, int], str]] = {}
        for offset, text in sorted(records.items()) if isolation == READ_UNCOMMITTED else ():
            if (value := history.values.get(text)) is None:
                continue
            producer, turn = _turn(value)
            before, other = last.get(producer, (turn, text))
            if turn < before:
                yield f"{text} is at offset {offset} of {place}, behind {other}"
            last[producer] = turn, text


def _turn(value: Value) -> tuple[str, tuple[int, int]]:
    """Who sent a value, and when in the order of all that it sent.

    In transactions clients of one identity are one producer: who comes next begins when what was before has ended.
    """
    if value.transaction is None:
        return value.client, (0, value.number)
    identity, incarnation = incarnation_of(value.client)
    return identity, (incarnation, value.number)


def backwards(history: History) -> Iterator[str]:
    for run in history.runs:
        last = -1 if run.start is None else run.start - 1
        for offset, text in run.records:
            if offset <= last:
                yield f"{run.client} read {text} at offset {offset} of {run.place} after offset {last}"
            last = offset


def skipped(history: History) -> Iterator[str]:
    orders = {of: sorted(records) for of, records in history.final.items()}
    for run in history.runs:
        order = orders.get((run.isolation, run.place), [])
        last = None if run.start is None else run.start - 1
        for offset in _passed(run):
            missed = 0 if last is None else bisect_left(order, offset) - bisect_right(order, last)
            if missed > 0:
                yield f"{run.client} came to offset {offset} of {run.place} after {last}, without {missed} between them"
            last = offset


def _passed(run: Run) -> Iterator[int]:
    yield from (offset for offset, _ in run.records)
    if run.end is not None:
        yield run.end


def stuck(history: History) -> Iterator[str]:
    for finished in history.followed:
        if finished.offset < finished.end_offset:
            yield (
                f"{finished.client}, with {finished.isolation}, comes to offset {finished.offset} of {finished.place} only, "
                f"which ends at {finished.end_offset}"
            )


# Ends


def end_back(history: History) -> Iterator[str]:
    known = {of: Floor(told) for of, told in _ends(history).items()}
    for listed in history.listed:
        floor = known[listed.isolation, listed.place].at(listed.asked_ns)
        if listed.end_offset < floor:
            yield (
                f"{listed.client} was told that {listed.place} ends at {listed.end_offset} for {listed.isolation}, "
                f"when it was known to go to {floor}"
            )


def _ends(history: History) -> dict[tuple[Isolation, Place], list[tuple[int, int]]]:
    """From when on each partition is known to go how far, for readers at each isolation."""
    ends: dict[tuple[Isolation, Place], list[tuple[int, int]]] = defaultdict(list)
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
