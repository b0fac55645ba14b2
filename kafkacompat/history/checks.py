"""The checks of a history, as a table. Each check yields a sentence for every violation.

Time and memory of a check are proportional to the history.
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
"""Most findings of a check that a verdict keeps; it counts all of them."""


class Check(NamedTuple):
    """A check: its name, what holds in a sound history, and the function that yields a sentence for each violation."""

    name: str
    holds: str
    findings: Callable[[History], Iterator[str]]


class Verdict(NamedTuple):
    """The result of a check: the number of findings, and the first ones."""

    check: Check
    found: int
    first: list[str]


def judge(events: Iterable[Event]) -> tuple[History, list[Verdict]]:
    """Make all checks; raises HistoryError if the events are not a complete history."""
    history = history_of(events)
    return history, [_make_check(check, history) for check in CHECKS]


def _make_check(check: Check, history: History) -> Verdict:
    findings = check.findings(history)
    first = list(islice(findings, SHOWN))
    return Verdict(check, len(first) + sum(1 for _ in findings), first)


CHECKS = (
    Check(
        "lost",
        "read_uncommitted finds every acknowledged value, and read_committed every committed one",
        records.lost,
    ),
    Check(
        "vanished", "readers find every value in the end that a reader at their isolation has read", records.vanished
    ),
    Check("unknown", "every value that is read was sent to that partition", records.unknown),
    Check("different", "an offset has one value, for all readers and for its producer", records.different),
    Check("doubled", "a value has one offset", records.doubled),
    Check("out of order", "a partition holds the values of a producer in the order of sending", records.out_of_order),
    Check("read backwards", "a reader's offsets ascend", records.backwards),
    Check("skipped", "a reader gets all values between two of its offsets", records.skipped),
    Check("stuck", "every partition can be read to its end", records.stuck),
    Check(
        "end back", "a partition's end is after all values that were in it when its end was requested", records.end_back
    ),
    Check(
        "aborted read",
        "read_committed shows no value before its commit, and none without one",
        transactions.aborted_read,
    ),
    Check("torn", "either all values of a transaction are committed, or none", transactions.torn),
    Check("offset back", "a committed offset does not go back", transactions.offset_back),
    Check("offset ahead", "a group's committed offset is one that a client has committed", transactions.offset_ahead),
    Check(
        "group skipped",
        "a member of the group got every value before the group's committed offset",
        transactions.group_skipped,
    ),
    Check(
        "copied again",
        "a value that is consumed and produced in one transaction has one copy",
        transactions.copied_again,
    ),
    Check(
        "miscopied",
        "the values before a copying group's committed offset are copied, and no others",
        transactions.miscopied,
    ),
)
