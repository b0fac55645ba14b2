"""What must hold of every history, as a table of checks, each of which tells where it does not.

Each takes time and memory in proportion to the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from kafkacompat.history import record_checks as records
from kafkacompat.history import transaction_checks as transactions
from kafkacompat.history.events import Event
from kafkacompat.history.index import History, history_of

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


CHECKS = (
    Check(
        "lost",
        "what was acknowledged is there for read_uncommitted, what was committed for read_committed, too",
        records.lost,
    ),
    Check("vanished", "what anybody read is there in the end for readers at the same isolation", records.vanished),
    Check("unknown", "what is read was sent, and to that partition", records.unknown),
    Check("different", "an offset has one value, for all readers and for who sent it", records.different),
    Check("doubled", "a value has one offset", records.doubled),
    Check(
        "out of order", "values of a producer are in a partition in the order they were sent in", records.out_of_order
    ),
    Check("read backwards", "a reader's offsets ascend", records.backwards),
    Check("skipped", "a reader is given all that is between two of its offsets", records.skipped),
    Check("stuck", "every partition can be read to its end", records.stuck),
    Check("end back", "a partition ends behind all that was there when its end was asked for", records.end_back),
    Check(
        "aborted read",
        "read_committed shows no value before its commit, and none without one",
        transactions.aborted_read,
    ),
    Check("torn", "of a transaction either all values are committed or none", transactions.torn),
    Check("offset back", "a committed offset does not go back", transactions.offset_back),
    Check("offset ahead", "a committed offset is one that was committed", transactions.offset_ahead),
    Check(
        "group skipped",
        "what is before a group's committed offset was given to one of its members",
        transactions.group_skipped,
    ),
    Check("copied again", "what is consumed and produced in one transaction is there once", transactions.copied_again),
    Check(
        "miscopied",
        "what is before a copying group's committed offset is copied, and nothing else",
        transactions.miscopied,
    ),
)
