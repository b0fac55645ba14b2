"""The service that clients had, from a history: operations, faults, and the longest times without progress."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from kafkacompat.history.index import History

NS_A_SECOND = 1_000_000_000
BROKER_KILLED = "broker killed"


class OperationCounts(NamedTuple):
    """The operations of all clients: values, ends of transactions, and commits of offsets.

    An operation without a response is indeterminate: it took effect or did not.
    """

    tried: int
    acknowledged: int
    indeterminate: int


def count_operations(history: History) -> OperationCounts:
    """Count the operations. A transaction that its client began and never ended is indeterminate, too."""
    commits = [commit for scope in history.commits.values() for commit in scope]
    acknowledged = (
        sum(value.acknowledged for value in history.values.values())
        + sum(transaction.committed is not None for transaction in history.transactions.values())
        + sum(commit.acknowledged_ns is not None for commit in commits)
    )
    tried = len(history.values) + len(history.transactions) + len(commits)
    return OperationCounts(tried, acknowledged, tried - acknowledged)


def count_faults(history: History) -> dict[str, int]:
    """Count the faults by their kinds."""
    kinds = Counter(fault.fault for fault in history.faults)
    kinds[BROKER_KILLED] += len(history.restarts)
    return dict(sorted((+kinds).items()))


def find_longest_gaps(history: History) -> dict[str, float]:
    """Find the longest times without service, in seconds.

    - writers: between two acknowledgements of a partition that producers write to,
    - readers: between two batches of records of such a partition that the readers at an isolation level received,
    - groups: between two acknowledged commits of a group.

    The times from the beginning of the clients' work and to its end count as well.
    """
    return {
        "writers": _find_longest_gap_s(history, _list_acknowledgements(history)),
        "readers": _find_longest_gap_s(history, _list_reads(history)),
        "groups": _find_longest_gap_s(history, _list_commits(history)),
    }


def _list_acknowledgements(history: History) -> Mapping[object, list[int]]:
    times_ns = defaultdict[object, list[int]](list)
    for value in history.values.values():
        # Copies depend on a group, and are counted there.
        if value.source is None and value.acknowledged_ns is not None:
            times_ns[value.place].append(value.acknowledged_ns)
    return times_ns


def _list_reads(history: History) -> Mapping[object, list[int]]:
    written = {value.place for value in history.values.values() if value.source is None}
    times_ns = defaultdict[object, list[int]](list)
    for run in history.runs:
        if run.client not in history.last_readers and run.client not in history.group_of and run.place in written:
            times_ns[run.isolation, run.place] += [time_ns for _, time_ns in run.times_ns]
    return times_ns


def _list_commits(history: History) -> Mapping[object, list[int]]:
    times_ns = defaultdict[object, list[int]](list)
    for (group, _), commits in history.commits.items():
        times_ns[group] += [commit.acknowledged_ns for commit in commits if commit.acknowledged_ns is not None]
    return times_ns


def _find_longest_gap_s(history: History, times_ns: Mapping[object, Iterable[int]]) -> float:
    work = history.work
    longest_ns = 0
    for scope_ns in times_ns.values():
        points = sorted(scope_ns)
        if work is not None:
            within = (time_ns for time_ns in points if work.begun_ns < time_ns < work.time_ns)
            points = [work.begun_ns, *within, work.time_ns]
        longest_ns = max(longest_ns, max((later - earlier for earlier, later in pairwise(points)), default=0))
    return round(longest_ns / NS_A_SECOND, 2)
