"""Fetch sessions: a client names its partitions once, and later only what changed (KIP-227).

The (session id, session epoch) of a request say what it wants:

==================  ===========================================================================
(any id, -1)        no session: read this list, and forget the session with that id
(any id, 0)         start a session with this list; the response carries its id, or 0 if there is no room
(id, n)             read the session's list with these changes; n counts up by one with each request
==================  ===========================================================================

A session's response leaves out a partition without news: no data, no error, and the same high watermark and log start
offset as in the response before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias
from weakref import WeakKeyDictionary

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import MAX_INT32

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
# Kafka's fixed time after which an idle session may be evicted for a new one.
EVICTION_MS = 120_000
MAX_INSTANCE_SESSIONS = 200

TopicKey: TypeAlias = "str | bytes"
PartitionKey: TypeAlias = "tuple[TopicKey, int]"


@dataclass(slots=True)
class WantedPartition:
    """One partition that a client reads, and what the last response said of it (``told_...``, -1 for nothing).

    ``topic`` is the name up to Fetch v12 and the topic id from v13. ``log_start_offset`` is that of a follower's log,
    -1 for consumers.
    """

    topic: TopicKey
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    told_high_watermark: int = -1
    told_log_start_offset: int = -1
    log_start_offset: int = -1

    @property
    def key(self) -> PartitionKey:
        return self.topic, self.partition

    def update(self, newer: WantedPartition) -> None:
        """Take over the offsets and limits of a newer request."""
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch
        self.log_start_offset = newer.log_start_offset

    def has_news(
        self, *, size_bytes: int, error: bool, high_watermark: int, log_start_offset: int, notes: bool = True
    ) -> bool:
        """Return whether the next response has to name the partition, and note what that response says if *notes* is set."""
        changed = high_watermark != self.told_high_watermark or log_start_offset != self.told_log_start_offset
        if notes:
            # Every response repeats the error until it is gone, and the response after that names the partition too.
            self.told_high_watermark = -1 if error else high_watermark
            self.told_log_start_offset = log_start_offset
        return changed or error or size_bytes > 0


@dataclass(slots=True)
class FetchSession:
    """The partitions of one client, in the order in which they are read."""

    session_id: int
    by_topic_id: bool
    last_used_ms: int
    epoch: int = 1
    partitions: dict[PartitionKey, WantedPartition] = field(default_factory=dict)

    def change(self, wanted: Iterable[WantedPartition], forgotten: Iterable[PartitionKey]) -> None:
        """Apply the changes that an incremental request carries."""
        for partition in wanted:
            known = self.partitions.get(partition.key)
            if known is None:
                self.partitions[partition.key] = partition
            else:
                known.update(partition)
        for key in forgotten:
            self.partitions.pop(key, None)

    def move_to_end(self, key: PartitionKey) -> None:
        """Move a partition whose data was sent to the end, so that the others are read first next time."""
        partition = self.partitions.pop(key, None)
        # Requests overlap: a later one may have removed the partition meanwhile.
        if partition is not None:
            self.partitions[key] = partition


@dataclass(slots=True)
class FetchContext:
    """What one request wants: its partitions, its session if it has one, and whether its response carries news only."""

    wanted: list[WantedPartition]
    session: FetchSession | None = None
    incremental: bool = False

    @property
    def session_id(self) -> int:
        return self.session.session_id if self.session is not None else 0


class FetchSessions:
    """The sessions of all clients, at most ``max_sessions`` (`max.incremental.fetch.session.cache.slots`).

    The clients of an instance have sessions of their own, at most as many as `MAX_INSTANCE_SESSIONS`: no other instance finds them, or
    takes their room.
    """

    def __init__(self, max_sessions: int, rng: Random) -> None:
        self._max_sessions = max_sessions
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}
        self._of_instances: WeakKeyDictionary[object, FetchSessions] = WeakKeyDictionary()

    def of_instance(self, instance: object) -> FetchSessions:
        """Return the sessions of an instance's clients; they are forgotten with the object *instance*."""
        sessions = self._of_instances.get(instance)
        if sessions is None:
            most = min(self._max_sessions, MAX_INSTANCE_SESSIONS)
            sessions = self._of_instances[instance] = FetchSessions(most, self._rng)
        return sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FetchSession]:
        return iter(self._sessions.values())

    def find_context(
        self,
        session_id: int,
        session_epoch: int,
        wanted: list[WantedPartition],
        forgotten: Iterable[PartitionKey],
        *,
        by_topic_id: bool,
        now_ms: int,
    ) -> FetchContext:
        """Return what a request wants, and apply its changes to its session.

        Raises KafkaError FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR: the
        client starts a new session then.
        """
        if session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._sessions.pop(session_id, None)
            start = session_epoch == INITIAL_EPOCH
            return FetchContext(wanted, self._start(wanted, by_topic_id, now_ms) if start else None)
        session = self._find(session_id, session_epoch, by_topic_id)
        session.change(wanted, forgotten)
        if not session.partitions:
            # A session without partitions is closed; its client learns that from the id 0.
            del self._sessions[session_id]
            return FetchContext([])
        session.epoch = 1 if session.epoch == MAX_INT32 else session.epoch + 1
        session.last_used_ms = now_ms
        # Most recently used last: eviction looks at the front.
        self._sessions[session_id] = self._sessions.pop(session_id)
        return FetchContext(list(session.partitions.values()), session, incremental=True)

    def discard(self, context: FetchContext) -> None:
        """Forget the session that a request has begun, as its response does not name it."""
        if context.session is not None:
            self._sessions.pop(context.session.session_id, None)
            context.session = None

    def _find(self, session_id: int, session_epoch: int, by_topic_id: bool) -> FetchSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {session_id}")
        if session.epoch != session_epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH, f"the session's epoch is {session.epoch}, not {session_epoch}"
            )
        if session.by_topic_id != by_topic_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "a session uses topic names or ids, not both")
        return session

    def _start(self, wanted: list[WantedPartition], by_topic_id: bool, now_ms: int) -> FetchSession | None:
        if not self._make_room(now_ms):
            return None
        session = FetchSession(self._new_id(), by_topic_id, now_ms)
        session.partitions = {partition.key: partition for partition in wanted}
        self._sessions[session.session_id] = session
        return session

    def _make_room(self, now_ms: int) -> bool:
        if len(self._sessions) < self._max_sessions:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms < EVICTION_MS:
            return False
        del self._sessions[oldest.session_id]
        return True

    def _new_id(self) -> int:
        while True:
            session_id = self._rng.randint(1, MAX_INT32)
            if session_id not in self._sessions:
                return session_id
