"""The verdict on a history, without the partitions of which acknowledged records may be lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

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
from tests.simulation.settings import COPIES

GROUP_TOPIC, TRANSACTION_TOPIC = "__consumer_offsets", "__transaction_state"
FINDINGS_SHOWN = 3


def judge(history: list[Event], lossy: Collection[str], resending: Collection[str] = ()) -> list[str]:
    """Return what is wrong with a history.

    *lossy* are the names of partitions, as `topic-0`, that may have lost records. If the coordinators' own partitions may have lost
    records, transactions or groups are left out. *resending* are the clients that sent values again under a new epoch of the producer.
    """
    events = list(_Rest(history, lossy, resending)) if lossy or resending else history
    try:
        _, verdicts = judge_history(events)
    except HistoryError as problem:
        return [f"the history is not complete: {problem}"]
    return [
        f"{verdict.check.name} ({verdict.finding_count}; {verdict.check.holds}): {'; '.join(verdict.first[:FINDINGS_SHOWN])}"
        for verdict in verdicts
        if verdict.finding_count
    ]


def has_lost(lossy: Iterable[str], topic: str) -> bool:
    """Return whether a partition of a topic is among those that may have lost records."""
    return any(name.rpartition("-")[0] == topic for name in lossy)


class _Rest:
    """The events of a history that can be judged."""

    def __init__(self, history: list[Event], lossy: Collection[str], resending: Collection[str]) -> None:
        self._history = history
        self._lossy = lossy
        self._resending = resending
        self._has_transactions = not has_lost(lossy, TRANSACTION_TOPIC)
        self._has_groups = not has_lost(lossy, GROUP_TOPIC)
        self._has_copies = self._has_groups and self._has_transactions and not has_lost(lossy, COPIES)
        sends = [event for event in history if isinstance(event, Send)]
        commits = [event for event in history if isinstance(event, Commit)]
        self._values = {(event.client, event.number) for event in sends if not self._has_value(event)}
        unjudged = [event for event in commits if not self._has_commit(event)]
        self._commits = {(event.client, event.number) for event in unjudged}
        self._offsets = {(event.group, event.place) for event in unjudged}
        copying = {event.group for event in commits if event.transaction is not None}
        self._groups = set() if self._has_copies else copying
        self._texts = {value_text(*value) for value in self._values}

    def __iter__(self) -> Iterator[Event]:
        for event in self._history:
            if not _KEEPS.get(type(event), _keep)(self, event):
                continue
            if isinstance(event, Read):
                event = event._replace(records=[record for record in event.records if record[1] not in self._texts])
            yield event
            if not self._has_transactions and isinstance(event, Positioned | Read | Finished | Listed):
                # Readers of committed records may wait for ever; what the others saw stands for it.
                yield _copy_as_committed(event)

    def _is_sound(self, place: HistoryPartition) -> bool:
        return str(place) not in self._lossy

    def _has_value(self, event: Send) -> bool:
        if event.source is not None and not (self._has_copies and self._is_sound(HistoryPartition(*event.source[:2]))):
            return False
        is_sound = self._is_sound(event.place) and event.client not in self._resending
        return is_sound and (event.transaction is None or self._has_transactions)

    def _has_commit(self, event: Commit) -> bool:
        is_sound = self._has_groups and self._is_sound(event.place)
        return is_sound and (event.transaction is None or self._has_copies)

    def keep_value(self, event: Send | Acknowledged) -> bool:
        """Whether an event of a value counts."""
        return (event.client, event.number) not in self._values

    def keep_commit(self, event: Commit | CommitAcknowledged) -> bool:
        """Whether an event of a commit counts."""
        return (event.client, event.number) not in self._commits

    def keep_transaction(self, event: End | Ended) -> bool:
        """Whether an event of a transaction counts."""
        return self._has_transactions

    def keep_fetched(self, event: Fetched) -> bool:
        """Whether a fetched offset counts."""
        is_sound = self._has_groups and self._is_sound(event.place) and (event.group, event.place) not in self._offsets
        # A group without copies is not judged as a whole: its other fetches would make it one that has to be complete.
        return is_sound and event.group not in self._groups

    def keep_reading(self, event: Positioned | Read | Finished | Listed) -> bool:
        """Whether an event of a reader counts."""
        is_committed = getattr(event, "isolation", None) == READ_COMMITTED
        return self._is_sound(event.place) and (self._has_transactions or not is_committed)


def _copy_as_committed(event: Positioned | Read | Finished | Listed) -> Event:
    copy = event._replace(client=f"copy-of-{event.client}")
    return copy if isinstance(copy, Positioned) else copy._replace(isolation=READ_COMMITTED)


def _keep(rest: _Rest, event: Event) -> bool:
    return True


_KEEPS: dict[type, Callable[[_Rest, Any], bool]] = {
    **dict.fromkeys((Send, Acknowledged), _Rest.keep_value),
    **dict.fromkeys((Commit, CommitAcknowledged), _Rest.keep_commit),
    **dict.fromkeys((End, Ended), _Rest.keep_transaction),
    Fetched: _Rest.keep_fetched,
    **dict.fromkeys((Positioned, Read, Finished, Listed), _Rest.keep_reading),
}
