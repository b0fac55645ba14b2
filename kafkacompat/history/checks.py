"""What must hold of every history, as a table of checks, each of which tells where it does not.

Each takes time and memory in proportion to the history.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, islice
from typing import NamedTuple

from kafkacompat.history.events import ISOLATIONS, READ_COMMITTED, READ_UNCOMMITTED, Event, Fetched, Isolation, Place
from kafkacompat.history.index import Committing, History, Run, history_of

SHOWN = 20
"""So many findings of a check are kept; all are counted."""


class Check(NamedTuple):
    """A name, what holds in a sound history, and what yields a sentence wherever it does not."""

    name: str
    holds: str
    findings: Callable[[History], Iterator[str]]


class Verdict(NamedTuple):
    """What a check found: how often, and the first ones."""

    check: Check
    found: int
    first: list[str]


def judge(events: Iterable[Event]) -> tuple[History, list[Verdict]]:
    """Make all checks; raises HistoryError if the events are not a whole history."""
    history = history_of(events)
    return history, [_verdict(check, history) for check in CHECKS]


def _verdict(check: Check, history: History) -> Verdict:
    findings = check.findings(history)
    first = list(islice(findings, SHOWN))
    return Verdict(check, len(first) + sum(1 for _ in findings), first)


# Values


def _lost(history: History) -> Iterator[str]:
    found = {of: set(records.values()) for of, records in history.final.items()}
    for text, value in history.values.items():
        for isolation in ISOLATIONS if value.is_stored else ():
            if text not in found[isolation, value.place] and history.reaches(isolation, value.place, value.offset):
                yield f"{text} is stored in {value.place}, at offset {value.offset}, but {isolation} does not find it"


def _vanished(history: History) -> Iterator[str]:
    for run in history.runs:
        kept = history.final.get((READ_UNCOMMITTED, run.place), {})
        for offset, text in run.records:
            if offset not in kept and history.reaches(READ_UNCOMMITTED, run.place, offset):
                yield f"{run.client} read {text} at offset {offset} of {run.place}, where in the end nothing is"


def _unknown(history: History) -> Iterator[str]:
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


def _different(history: History) -> Iterator[str]:
    known: dict[tuple[Place, int], tuple[str, str]] = {}
    for who, place, offset, text in _seen(history):
        other, first = known.setdefault((place, offset), (who, text))
        if text != first:
            yield f"offset {offset} of {place} is {first} for {other}, but {text} for {who}"


def _doubled(history: History) -> Iterator[str]:
    known: dict[str, int] = {}
    for who, place, offset, text in _seen(history):
        first = known.setdefault(text, offset)
        if offset != first:
            yield f"{text} is at offset {first} of {place}, and again at offset {offset} ({who})"
            known[text] = offset


def _out_of_order(history: History) -> Iterator[str]:
    for (isolation, place), records in history.final.items():
        last: dict[str, int] = {}
        for offset, text in sorted(records.items()) if isolation == READ_UNCOMMITTED else ():
            if (value := history.values.get(text)) is None:
                continue
            if value.number < last.get(value.client, -1):
                yield f"{text} is at offset {offset} of {place}, behind {value.client}:{last[value.client]}"
            last[value.client] = value.number


# Readers


def _backwards(history: History) -> Iterator[str]:
    for run in history.runs:
        last = -1 if run.start is None else run.start - 1
        for offset, text in run.records:
            if offset <= last:
                yield f"{run.client} read {text} at offset {offset} of {run.place} after offset {last}"
            last = offset


def _skipped(history: History) -> Iterator[str]:
    orders = {of: sorted(records) for of, records in history.final.items()}
    for run in history.runs:
        order = orders.get((run.isolation, run.place), [])
        last = None if run.start is None else run.start - 1
        for offset, _ in run.records:
            missed = 0 if last is None else bisect_left(order, offset) - bisect_right(order, last)
            if missed > 0:
                yield f"{run.client} read offset {offset} of {run.place} after {last}, without {missed} between them"
            last = offset


def _stuck(history: History) -> Iterator[str]:
    for (isolation, place), finished in history.finished.items():
        if finished.offset < finished.end_offset:
            yield f"{isolation} comes to offset {finished.offset} of {place} only, which ends at {finished.end_offset}"


# Transactions


def _aborted_read(history: History) -> Iterator[str]:
    for run in history.runs:
        for offset, text, read_ns in _timed(run) if run.isolation == READ_COMMITTED else ():
            value = history.values.get(text)
            if value is None or (transaction := value.transaction) is None:
                continue
            where = f"{run.client} read {text} at offset {offset} of {run.place}"
            if not transaction.may_be_committed:
                yield f"{where}, but {transaction} was not committed"
            elif transaction.asked_ns is not None and read_ns < transaction.asked_ns:
                yield f"{where} before the commit of {transaction} was asked for"


def _timed(run: Run) -> Iterator[tuple[int, str, int]]:
    begin = 0
    for end, time_ns in run.times_ns:
        for offset, text in run.records[begin:end]:
            yield offset, text, time_ns
        begin = end


def _torn(history: History) -> Iterator[str]:
    found = {of: set(records.values()) for of, records in history.final.items() if of[0] == READ_COMMITTED}
    for transaction in history.transactions.values():
        values = [(text, history.values[text]) for text in transaction.values]
        if not all(history.reaches(READ_COMMITTED, value.place, -1) for _, value in values):
            continue
        there = [text for text, value in values if text in found[READ_COMMITTED, value.place]]
        if there and len(there) < len(values):
            missing = next(text for text, _ in values if text not in there)
            yield f"of {transaction} {len(there)} of {len(values)} values are there: {there[0]}, but not {missing}"


# Offsets of groups


def _offset_back(history: History) -> Iterator[str]:
    holding = {of: _holding(commits) for of, commits in history.commits.items()}
    for fetched in history.fetched:
        times_ns, offsets = holding.get((fetched.group, fetched.place), ([], []))
        at = bisect_right(times_ns, fetched.asked_ns)
        if at and fetched.offset < offsets[at - 1]:
            yield f"{_told(fetched)} after {offsets[at - 1]} was committed"


def _holding(commits: list[Committing]) -> tuple[list[int], list[int]]:
    """(times, offsets): from each time on at least that offset is committed."""
    pairs = sorted((commit.acknowledged_ns, commit.offset) for commit in commits if commit.acknowledged_ns is not None)
    return [time_ns for time_ns, _ in pairs], list(accumulate((offset for _, offset in pairs), max))


def _told(fetched: Fetched) -> str:
    return f"{fetched.client} was told that group {fetched.group} is at offset {fetched.offset} of {fetched.place}"


def _offset_ahead(history: History) -> Iterator[str]:
    asked: dict[tuple[str, Place], dict[int, int]] = {}
    for of, commits in history.commits.items():
        first = asked.setdefault(of, {})
        for commit in commits:
            if commit.asked_ns is not None:
                first[commit.offset] = min(commit.asked_ns, first.get(commit.offset, commit.asked_ns))
    for fetched in history.fetched:
        asked_ns = asked.get((fetched.group, fetched.place), {}).get(fetched.offset)
        if fetched.offset >= 0 and (asked_ns is None or asked_ns > fetched.time_ns):
            yield f"{_told(fetched)}, which nobody had committed"


def _group_skipped(history: History) -> Iterator[str]:
    read: dict[tuple[str, Place], set[int]] = {}
    isolations: dict[str, Isolation] = {}
    for run in history.runs:
        if run.client not in history.last_readers and (group := history.group_of.get(run.client)) is not None:
            read.setdefault((group, run.place), set()).update(offset for offset, _ in run.records)
            isolations[group] = run.isolation or isolations.get(group, READ_UNCOMMITTED)
    for (group, place), offsets in read.items():
        end = history.last_committed(group, place)
        for offset, text in history.final.get((isolations[group], place), {}).items():
            if offset < end and offset not in offsets:
                yield f"group {group} is at offset {end} of {place}, but no member was given {text} at offset {offset}"


# Copies


def _copies(history: History) -> dict[Place, dict[int, list[str]]]:
    """Of each partition copied from the copies that are committed, by the offset of what they are copies of."""
    copies: dict[Place, dict[int, list[str]]] = {}
    for (isolation, _), records in history.final.items():
        for text in records.values() if isolation == READ_COMMITTED else ():
            value = history.values.get(text)
            if value is not None and value.source is not None:
                topic, partition, offset = value.source
                copies.setdefault(Place(topic, partition), {}).setdefault(offset, []).append(text)
    return copies


def _copied_again(history: History) -> Iterator[str]:
    for place, by_offset in _copies(history).items():
        for offset, texts in by_offset.items():
            if len(texts) > 1:
                yield f"offset {offset} of {place} was copied {len(texts)} times: {', '.join(texts[:5])}"


def _miscopied(history: History) -> Iterator[str]:
    copies = _copies(history)
    for (group, place), commits in history.commits.items():
        if all(commit.transaction is None for commit in commits) or not _is_whole(history):
            continue
        end = history.last_committed(group, place)
        copied = copies.get(place, {})
        for offset, text in history.final.get((READ_COMMITTED, place), {}).items():
            if offset < end and offset not in copied:
                yield f"group {group} is at offset {end} of {place}, but {text} at offset {offset} was not copied"
        for offset in copied:
            if offset >= end:
                yield f"group {group} is at offset {end} of {place}, but offset {offset} was copied already"


def _is_whole(history: History) -> bool:
    """Whether all that is committed could be read."""
    return all(finished.offset >= finished.end_offset for finished in history.finished.values())


CHECKS = (
    Check("lost", "what was acknowledged, or committed, is there for readers at both isolations", _lost),
    Check("vanished", "what anybody read is still there in the end", _vanished),
    Check("unknown", "what is read was sent, and to that partition", _unknown),
    Check("different", "an offset has one value, for all readers and for who sent it", _different),
    Check("doubled", "a value has one offset", _doubled),
    Check("out of order", "values of a producer are in a partition in the order they were sent in", _out_of_order),
    Check("read backwards", "a reader's offsets ascend", _backwards),
    Check("skipped", "a reader is given all that is between two of its offsets", _skipped),
    Check("stuck", "every partition can be read to its end at both isolations", _stuck),
    Check("aborted read", "read_committed shows no value before its commit, and none without one", _aborted_read),
    Check("torn", "of a transaction either all values are committed or none", _torn),
    Check("offset back", "a committed offset does not go back", _offset_back),
    Check("offset ahead", "a committed offset is one that was committed", _offset_ahead),
    Check("group skipped", "what is before a group's committed offset was given to one of its members", _group_skipped),
    Check("copied again", "what is consumed and produced in one transaction is there once", _copied_again),
    Check("miscopied", "what is before a copying group's committed offset is copied, and nothing else", _miscopied),
)
