"""The knowledge from a history: values and their acknowledgements, transactions, the reads of consumers, committed offsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kafkacompat.history.events import (
    ISOLATIONS,
    READ_UNCOMMITTED,
    Acknowledged,
    Commit,
    CommitAcknowledged,
    End,
    Ended,
    Event,
    Faulted,
    Fetched,
    Finished,
    HistoryError,
    HistoryPartition,
    Isolation,
    Listed,
    Positioned,
    Read,
    Restarted,
    Send,
    Worked,
)

ClientNumber = tuple[str, int]
"""A client and its number of a value, a transaction or a commit."""

PartitionScope = tuple[str, HistoryPartition]
"""An isolation level or a group, and a partition."""


@dataclass
class RecordedTransaction:
    """One transaction with the texts of its values."""

    name: ClientNumber
    values: list[str] = field(default_factory=list)
    asked_ns: int | None = None
    """The time of the first request to commit it."""
    committed: bool | None = None
    """Whether the broker acknowledged its commit or its abort; None for neither."""
    commits: list[RecordedCommit] = field(default_factory=list)

    @property
    def may_be_committed(self) -> bool:
        """Whether it is committed, or its end is unknown after a request to commit it."""
        return self.asked_ns is not None and self.committed is not False

    def __str__(self) -> str:
        return f"transaction {self.name[1]} of {self.name[0]}"


@dataclass
class RecordedValue:
    """One value that was sent."""

    client: str
    number: int
    place: HistoryPartition
    transaction: RecordedTransaction | None
    source: tuple[str, int, int] | None
    acknowledged_ns: int | None = None
    offset: int = -1

    @property
    def acknowledged(self) -> bool:
        """Whether the broker acknowledged it."""
        return self.acknowledged_ns is not None

    def must_be_read(self, isolation: Isolation) -> bool:
        """Return whether readers at an isolation level must find it; aborted values are in the log, too."""
        is_committed = self.transaction is not None and self.transaction.committed is True
        return is_committed or (self.acknowledged and (self.transaction is None or isolation == READ_UNCOMMITTED))


@dataclass
class ReaderRun:
    """The records that a consumer read of a partition from one position on, as (offset, value) in the order of reading."""

    client: str
    isolation: Isolation
    place: HistoryPartition
    start: int | None
    """The offset of the position, if known."""
    records: list[tuple[int, str]] = field(default_factory=list)
    times_ns: list[tuple[int, int]] = field(default_factory=list)
    """(number of records read so far, time) for each batch of records."""
    end: int | None = None
    """The offset that the consumer reached, if it read to the end."""


@dataclass
class RecordedCommit:
    """A commit of a group's offset."""

    offset: int
    transaction: RecordedTransaction | None
    asked_ns: int | None
    """The time from which it may be in effect; None if its transaction was not committed."""
    acknowledged_ns: int | None = None
    """The time from which it is in effect."""


@dataclass
class History:
    """A whole history. ``values`` are by the texts of their records."""

    values: dict[str, RecordedValue] = field(default_factory=dict)
    transactions: dict[ClientNumber, RecordedTransaction] = field(default_factory=dict)
    runs: list[ReaderRun] = field(default_factory=list)
    commits: defaultdict[PartitionScope, list[RecordedCommit]] = field(default_factory=lambda: defaultdict(list))
    fetched: list[Fetched] = field(default_factory=list)
    group_of: dict[str, str] = field(default_factory=dict)
    """The group of each client that committed offsets or fetched committed ones."""
    listed: list[Listed] = field(default_factory=list)
    restarts: list[Restarted] = field(default_factory=list)
    faults: list[Faulted] = field(default_factory=list)
    work: Worked | None = None
    """The time in which clients were at work, if the history has it."""
    followed: list[Finished] = field(default_factory=list)
    """The last offsets of all readers that read to the end."""
    finished: dict[PartitionScope, Finished] = field(default_factory=dict)
    """The last offsets of the last readers."""
    final: dict[PartitionScope, dict[int, str]] = field(default_factory=dict)
    """The values by offset that the last readers found, for each isolation level and partition."""
    last_readers: set[str] = field(default_factory=set)
    last_fetched: dict[PartitionScope, int] = field(default_factory=dict)
    """The committed offsets that the last readers received."""

    def reaches(self, isolation: Isolation, place: HistoryPartition, offset: int) -> bool:
        """Return whether the last reader reached the end of the partition, or passed *offset* if that is not -1."""
        finished = self.finished.get((isolation, place))
        return finished is None or finished.offset >= finished.end_offset or 0 <= offset < finished.offset

    def last_committed_offset(self, group: str, place: HistoryPartition) -> int:
        """Return the group's committed offset in the end; raises HistoryError if no last reader fetched it."""
        try:
            return max(self.last_fetched[group, place], 0)
        except KeyError:
            raise HistoryError(f"no last reader fetched the offset of group {group} in {place}") from None


def index_history(events: Iterable[Event]) -> History:
    """Index events in the order of time; raises HistoryError if they are not a complete history."""
    indexing = _HistoryIndexer()
    for event in events:
        try:
            _INDEX_EVENT[type(event)](indexing, event)
        except KeyError as problem:
            raise HistoryError(f"{event} is the result of no request: {problem}") from problem
    return indexing.complete()


class _HistoryIndexer:
    def __init__(self) -> None:
        self.history = History()
        self._runs: dict[tuple[str, HistoryPartition], ReaderRun] = {}
        self._commits: dict[ClientNumber, RecordedCommit] = {}

    def complete(self) -> History:
        """Return the history; every partition with values must have been read to the end at both isolation levels."""
        history = self.history
        finals = history.last_readers = {event.client for event in history.finished.values()}
        for run in history.runs:
            if run.client in finals:
                history.final[run.isolation, run.place] = dict(run.records)
        for event in history.fetched:
            if event.client in finals:
                history.last_fetched[event.group, event.place] = event.offset
        for place in sorted({value.place for value in history.values.values()}):
            for isolation in ISOLATIONS:
                if (isolation, place) not in history.finished:
                    raise HistoryError(f"no reader read {place} to the end with isolation.level={isolation}")
                history.final.setdefault((isolation, place), {})
        return history

    def _transaction(self, client: str, number: int | None) -> RecordedTransaction | None:
        if number is None:
            return None
        return self.history.transactions.setdefault((client, number), RecordedTransaction((client, number)))

    def send(self, event: Send) -> None:
        transaction = self._transaction(event.client, event.transaction)
        text = value_text(event.client, event.number)
        self.history.values[text] = RecordedValue(event.client, event.number, event.place, transaction, event.source)
        if transaction is not None:
            transaction.values.append(text)

    def acknowledged(self, event: Acknowledged) -> None:
        value = self.history.values[value_text(event.client, event.number)]
        value.acknowledged_ns, value.offset = event.time_ns, event.offset

    def end(self, event: End) -> None:
        transaction = self._transaction(event.client, event.transaction)
        if transaction is not None and event.commit and transaction.asked_ns is None:
            transaction.asked_ns = event.time_ns
            for commit in transaction.commits:
                commit.asked_ns = event.time_ns

    def ended(self, event: Ended) -> None:
        transaction = self.history.transactions[event.client, event.transaction]
        transaction.committed = event.committed
        for commit in transaction.commits:
            if event.committed:
                commit.acknowledged_ns = event.time_ns
            else:
                commit.asked_ns = None

    def positioned(self, event: Positioned) -> None:
        self._runs.pop((event.client, event.place), None)
        self._begin_run(event.client, "", event.place, event.offset)

    def _begin_run(self, client: str, isolation: Isolation, place: HistoryPartition, start: int | None) -> ReaderRun:
        run = self._runs[client, place] = ReaderRun(client, isolation, place, start)
        self.history.runs.append(run)
        return run

    def read(self, event: Read) -> None:
        run = self._runs.get((event.client, event.place))
        if run is None:
            run = self._begin_run(event.client, event.isolation, event.place, None)
        run.isolation = event.isolation
        run.records += event.records
        run.times_ns.append((len(run.records), event.time_ns))

    def commit(self, event: Commit) -> None:
        transaction = self._transaction(event.client, event.transaction)
        asked_ns = event.time_ns if transaction is None else None
        commit = self._commits[event.client, event.number] = RecordedCommit(event.offset, transaction, asked_ns)
        self.history.commits[event.group, event.place].append(commit)
        self.history.group_of[event.client] = event.group
        if transaction is not None:
            transaction.commits.append(commit)

    def commit_acknowledged(self, event: CommitAcknowledged) -> None:
        commit = self._commits[event.client, event.number]
        if commit.transaction is None:
            commit.acknowledged_ns = event.time_ns

    def fetched(self, event: Fetched) -> None:
        self.history.fetched.append(event)
        self.history.group_of[event.client] = event.group

    def finished(self, event: Finished) -> None:
        self.history.followed.append(event)
        self.history.finished[event.isolation, event.place] = event
        if (run := self._runs.get((event.client, event.place))) is not None:
            # A reader that received no record has no Read event, which would name its isolation level.
            run.isolation, run.end = event.isolation, event.offset

    def listed(self, event: Listed) -> None:
        self.history.listed.append(event)

    def restarted(self, event: Restarted) -> None:
        self.history.restarts.append(event)

    def faulted(self, event: Faulted) -> None:
        self.history.faults.append(event)

    def worked(self, event: Worked) -> None:
        self.history.work = event


def split_client_name(client: str) -> tuple[str, int]:
    """Split a client's name into its identity and incarnation; the processes of an identity follow each other."""
    identity, _, number = client.rpartition(".")
    return (identity, int(number)) if number.isdecimal() else (client, 0)


def value_text(client: str, number: int) -> str:
    """Build the text of a value's record."""
    return f"{client}:{number}"


_INDEX_EVENT: dict[type[Event], Callable[[_HistoryIndexer, Any], None]] = {
    Send: _HistoryIndexer.send,
    Acknowledged: _HistoryIndexer.acknowledged,
    End: _HistoryIndexer.end,
    Ended: _HistoryIndexer.ended,
    Positioned: _HistoryIndexer.positioned,
    Read: _HistoryIndexer.read,
    Commit: _HistoryIndexer.commit,
    CommitAcknowledged: _HistoryIndexer.commit_acknowledged,
    Fetched: _HistoryIndexer.fetched,
    Finished: _HistoryIndexer.finished,
    Listed: _HistoryIndexer.listed,
    Restarted: _HistoryIndexer.restarted,
    Faulted: _HistoryIndexer.faulted,
    Worked: _HistoryIndexer.worked,
}
