"""The follower's side of a fetch session: the leader knows the partitions, and a request names only changes (KIP-227).

The session of the leader and the rules of its epochs are in `partitions/fetch_sessions`. A leader that has no room, or
serves Fetch 6 or older, answers with session id 0; then every request names all partitions. The order of the partitions in
such a request decides which of them get data when the response is full, so the caller keeps the longest waiting ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kafkacompat.replication.follower import PartitionKey
from kafkacompat.wire.apis.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import MAX_INT32

NO_SESSION = 0
FIRST_EPOCH = 0
"""The epoch of a request that names all partitions, and asks for a new session."""

LOST_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of an incremental request after which a full one succeeds: the leader evicted the session or was restarted."""


class FetchPosition(NamedTuple):
    """What a fetch says of one partition."""

    topic_id: bytes
    fetch_offset: int
    log_start_offset: int
    leader_epoch: int
    last_fetched_epoch: int


class FollowerSession:
    """The session of one fetcher with its leader.

    ``find_max_bytes`` returns the limit for a partition's data in a response. The leader keeps it until the partition's
    position changes.
    """

    def __init__(self, find_max_bytes: Callable[[PartitionKey], int]) -> None:
        self._find_max_bytes = find_max_bytes
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._sent: dict[PartitionKey, FetchPosition] = {}
        self._changed: dict[PartitionKey, None] = {}
        self._unheard: set[PartitionKey] = set()
        self._names: dict[bytes, str] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request names all partitions."""
        return self._epoch == FIRST_EPOCH

    @property
    def size(self) -> int:
        """The number of partitions that the leader has in the session."""
        return len(self._sent)

    def note_change(self, key: PartitionKey) -> None:
        """Look at a partition again when the next request is built."""
        self._changed[key] = None

    def note_unheard(self, key: PartitionKey) -> None:
        """Let the leader repeat what it said of a partition, as nobody could take it.

        A leader sends no offsets twice in a session, so the next request removes the partition and a later one adds it.
        """
        self._unheard.add(key)
        self.note_change(key)

    def fill(
        self,
        request: FetchRequest,
        wanted: Iterable[PartitionKey],
        find_position: Callable[[PartitionKey], FetchPosition | None],
    ) -> Iterator[None]:
        """Fill a request, with a step for each partition.

        *wanted* are the partitions to fetch, in order; *find_position* returns None for any other partition.
        """
        request.session_id, request.session_epoch = self._id, self._epoch
        if self.is_full:
            self._sent, self._names = {}, {}
            self._changed, keys = {}, list(wanted)
            self._unheard.clear()
        else:
            keys = list(self._changed)
            self._changed = {}
        for key in keys:
            position, sent = find_position(key), self._sent.get(key)
            if sent is not None and (position is None or position.topic_id != sent.topic_id or key in self._unheard):
                self._forget(request, key, sent)
                if position is not None:
                    # Up to Fetch 12 a leader adds partitions before it removes those of the same name.
                    self.note_change(key)
            elif position is not None and position != sent:
                self._want(request, key, position)
            yield

    def _forget(self, request: FetchRequest, key: PartitionKey, sent: FetchPosition) -> None:
        del self._sent[key]
        self._unheard.discard(key)
        topic, index = key
        topics = request.forgotten_topics_data
        if not topics or (topics[-1].topic, topics[-1].topic_id) != (topic, sent.topic_id):
            topics.append(ForgottenTopic(topic=topic, topic_id=sent.topic_id))
        topics[-1].partitions.append(index)

    def _want(self, request: FetchRequest, key: PartitionKey, position: FetchPosition) -> None:
        topic, index = key
        self._sent[key] = position
        self._names[position.topic_id] = topic
        topics = request.topics
        if not topics or (topics[-1].topic, topics[-1].topic_id) != (topic, position.topic_id):
            topics.append(FetchTopic(topic=topic, topic_id=position.topic_id))
        topics[-1].partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.fetch_offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.log_start_offset,
                partition_max_bytes=self._find_max_bytes(key),
            )
        )

    def accept(self, response: FetchResponse) -> bool:
        """Take the session's id, or its error, from a response; return whether the response has data."""
        if response.error_code:
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self.reset()
            return False
        if self.is_full or response.session_id == NO_SESSION:
            self._epoch = FIRST_EPOCH if response.session_id == NO_SESSION else 1
        else:
            self._epoch = 1 if self._epoch == MAX_INT32 else self._epoch + 1
        self._id = response.session_id
        return True

    def reset(self) -> None:
        """End the session with the next request, and begin another."""
        self._epoch = FIRST_EPOCH

    def find_topic(self, response: FetchableTopicResponse) -> str:
        """Return the name of a topic in a response; empty for an unknown topic id."""
        return response.topic or self._names.get(response.topic_id, "")

    def find_sent(self, key: PartitionKey) -> FetchPosition | None:
        """Return what the leader knows of a partition; None if it is not in the session."""
        return self._sent.get(key)
