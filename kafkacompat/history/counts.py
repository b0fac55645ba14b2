"""The numbers of events in a history, and whether they are enough to judge by."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from kafkacompat.history.events import READ_UNCOMMITTED
from kafkacompat.history.index import History


def count_events(history: History) -> dict[str, int]:
    """Count the events of a history."""
    values, transactions = history.values.values(), history.transactions.values()
    live = [run for run in history.runs if run.client not in history.last_readers]
    return {
        "broker killed": len(history.restarts),
        "broker killed after it acknowledged values": _count_kills_at_work(history),
        "values sent": len(values),
        "values acknowledged": sum(value.acknowledged for value in values),
        "copies acknowledged": sum(value.acknowledged and value.source is not None for value in values),
        "transactions committed": sum(transaction.committed is True for transaction in transactions),
        "transactions aborted": sum(transaction.committed is False for transaction in transactions),
        "transactions with an unknown end": sum(transaction.committed is None for transaction in transactions),
        "records read": sum(len(run.records) for run in live),
        "start positions of readers": len(live),
        "offsets committed": sum(
            commit.acknowledged_ns is not None for commits in history.commits.values() for commit in commits
        ),
        "committed offsets fetched": len(history.fetched),
        "ends of partitions listed": len(history.listed),
        "records in the end": sum(
            len(records) for (level, _), records in history.final.items() if level == READ_UNCOMMITTED
        ),
    }


def _count_kills_at_work(history: History) -> int:
    """Count the kills before which the broker had acknowledged a value since its last start."""
    times_ns = sorted(value.acknowledged_ns for value in history.values.values() if value.acknowledged_ns is not None)
    at_work, ready_ns = 0, -1
    for restart in history.restarts:
        at_work += bisect_right(times_ns, restart.killed_ns) > bisect_right(times_ns, ready_ns)
        ready_ns = restart.time_ns
    return at_work


def list_gaps(history: History) -> Iterator[str]:
    """Yield why a verdict without findings would mean nothing: the work that never succeeded."""
    counts = count_events(history)
    if not counts["values acknowledged"]:
        yield "nothing was acknowledged"
    if not counts["records read"]:
        yield "nothing was read while clients were at work"
    if history.transactions and not counts["transactions committed"]:
        yield "no transaction was committed"
    if history.restarts and not _count_kills_at_work(history):
        yield "the broker was killed only while nothing was acknowledged"
    committing = {
        group for (group, _), commits in history.commits.items() if any(commit.acknowledged_ns for commit in commits)
    }
    asking = {fetched.group for fetched in history.fetched if fetched.client not in history.last_readers}
    for group in sorted(asking - committing):
        yield f"group {group} committed nothing"
