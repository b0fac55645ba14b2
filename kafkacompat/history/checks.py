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
from kafkacompat.history.index import History, index_history

MAX_FINDINGS_KEPT = 20
"""Most findings of a check that a verdict keeps; it counts all of them."""


class HistoryCheck(NamedTuple):
    """A check: its name, what holds in a sound history, and the function that yields a sentence for each violation."""

    name: str
    holds: str
    findings: Callable[[History], Iterator[str]]


class CheckVerdict(NamedTuple):
    """The result of a check: the number of findings, and the first ones."""

    check: HistoryCheck
    finding_count: int
    first: list[str]


def judge_history(events: Iterable[Event]) -> tuple[History, list[CheckVerdict]]:
    """Make all checks; raises HistoryError if the events are not a complete history."""
    history = index_history(events)
    return history, [_make_check(check, history) for check in CHECKS]


def _make_check(check: HistoryCheck, history: History) -> CheckVerdict:
    findings = check.findings(history)
    first = list(islice(findings, MAX_FINDINGS_KEPT))
    return CheckVerdict(check, len(first) + sum(1 for _ in findings), first)


CHECKS = (
    HistoryCheck(
        "lost",
        "read_uncommitted finds every acknowledged value, and read_committed every committed one",
        records.find_lost,
    ),
    HistoryCheck(
        "vanished",
        "readers find every value in the end that a reader at their isolation has read",
        records.find_vanished,
    ),
    HistoryCheck("unknown", "every value that is read was sent to that partition", records.find_unknown),
    HistoryCheck("different", "an offset has one value, for all readers and for its producer", records.find_different),
    HistoryCheck("doubled", "a value has one offset", records.find_doubled),
    HistoryCheck(
        "out of order", "a partition holds the values of a producer in the order of sending", records.find_out_of_order
    ),
    HistoryCheck("read backwards", "a reader's offsets ascend", records.find_backwards),
    HistoryCheck("skipped", "a reader gets all values between two of its offsets", records.find_skipped),
    HistoryCheck("stuck", "every partition can be read to its end", records.find_stuck),
    HistoryCheck(
        "end back",
        "a partition's end is after all values that were in it when its end was requested",
        records.find_ends_going_back,
    ),
    HistoryCheck(
        "aborted read",
        "read_committed shows no value before its commit, and none without one",
        transactions.find_aborted_reads,
    ),
    HistoryCheck("torn", "either all values of a transaction are committed, or none", transactions.find_torn),
    HistoryCheck("offset back", "a committed offset does not go back", transactions.find_offsets_going_back),
    HistoryCheck(
        "offset ahead", "a group's committed offset is one that a client has committed", transactions.find_offsets_ahead
    ),
    HistoryCheck(
        "group skipped",
        "a member of the group got every value before the group's committed offset",
        transactions.find_skipped_by_groups,
    ),
    HistoryCheck(
        "copied again",
        "a value that is consumed and produced in one transaction has one copy",
        transactions.find_copied_again,
    ),
    HistoryCheck(
        "miscopied",
        "the values before a copying group's committed offset are copied, and no others",
        transactions.find_miscopied,
    ),
)
