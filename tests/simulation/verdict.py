"""The verdict on a history, without the partitions of which acknowledged records may be lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from kafkacompat.history.checks import judge_history
from kafkacompat.history.events import (
    READ_COMMITTED,
    Acknowledged,
    Commit,
    CommitAcknowledged,
    End,
    Ended,
    Event,
    Fetched,
    Finished,
    HistoryError,
    HistoryPartition,
    Listed,
    Positioned,
    Read,
    Send,
)
from kafkacompat.history.index import value_text

GROUP_TOPIC, TRANSACTION_TOPIC = "__consumer_offsets", "__transaction_state"
FINDINGS_SHOWN = 3


def judge(history: list[Event], lossy: Collection[str], resending: Collection[str] = ()) -> list[str]:
    """Return what is wrong with a history.

    *lossy* are the names of partitions, as `topic-0`, that may have lost records. If the coordinators' own partitions may have lost
    records, transactions or groups are left out. *resending* are the clients that sent values again under a new epoch of the producer.
    """
    events = list(_leave_out(history, lossy, resending)) if lossy or resending else history
    try:
        _, verdicts = judge_history(events)
    except HistoryError as problem:
        return [f"the history is not complete: {problem}"]
    return [
        f"{verdict.check.name} ({verdict.found}; {verdict.check.holds}): {'; '.join(verdict.first[:FINDINGS_SHOWN])}"
        for verdict in verdicts
        if verdict.found
    ]


def _leave_out(history: list[Event], lossy: Collection[str], resending: Collection[str]) -> Iterator[Event]:
    topics = {name.rpartition("-")[0] for name in lossy}
    without_transactions = TRANSACTION_TOPIC in topics
    without_groups = GROUP_TOPIC in topics

    def is_lossy(place: HistoryPartition) -> bool:
        return str(place) in lossy

    values: set[tuple[str, int]] = set()
    commits: set[tuple[str, int]] = set()
    for event in history:
        if isinstance(event, Send) and (
            is_lossy(event.place)
            or event.client in resending
            or (without_transactions and event.transaction is not None)
            or (event.source is not None and (without_groups or is_lossy(HistoryPartition(*event.source[:2]))))
        ):
            values.add((event.client, event.number))
        elif isinstance(event, Commit) and (
            without_groups or is_lossy(event.place) or (without_transactions and event.transaction is not None)
        ):
            commits.add((event.client, event.number))
    texts = {value_text(*value) for value in values}
    keeps: dict[type, Callable[[Event], bool]] = {
        Send: lambda event: (event.client, event.number) not in values,
        Acknowledged: lambda event: (event.client, event.number) not in values,
        End: lambda event: not without_transactions,
        Ended: lambda event: not without_transactions,
        Commit: lambda event: (event.client, event.number) not in commits,
        CommitAcknowledged: lambda event: (event.client, event.number) not in commits,
        Fetched: lambda event: not (without_groups or is_lossy(event.place)),
        **dict.fromkeys((Positioned, Finished, Listed, Read), lambda event: not is_lossy(event.place)),
    }
    readings = (Read, Positioned, Finished, Listed)
    for event in history:
        if without_transactions and isinstance(event, readings) and getattr(event, "isolation", "") == READ_COMMITTED:
            continue  # such a reader may wait for ever for the end of a transaction
        if not keeps.get(type(event), lambda event: True)(event):
            continue
        if isinstance(event, Read) and texts:
            event = event._replace(records=[record for record in event.records if record[1] not in texts])
        yield event
        if without_transactions and isinstance(event, Read | Finished | Listed):
            # What the other readers saw stands for it.
            yield event._replace(client=f"copy-of-{event.client}", isolation=READ_COMMITTED)
