"""A consumer's fetch session with one broker (KIP-227): what a request names, and what a response means for the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kafkacompat.history.events import HistoryPartition
from kafkacompat.wire.apis.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kafkacompat.wire.errors import ErrorCode

FULL_EPOCH = 0
LAST_SESSION_EPOCH = 2**31 - 1


class WantedFetch(NamedTuple):
    """What a consumer wants of a partition."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    max_bytes: int


class FetchSession:
    """The session by the rules of the Java client's FetchSessionHandler.

    The first request, and each one after a failure, names all partitions. The others name those that were added or changed, and those
    that are forgotten.
    """

    def __init__(self) -> None:
        self._session_id = 0
        self._epoch = FULL_EPOCH
        self._partitions: dict[HistoryPartition, WantedFetch] = {}

    def fill(self, request: FetchRequest, wanted: Mapping[HistoryPartition, WantedFetch]) -> None:
        """Put the session and the partitions that have to be named into a request."""
        known = {} if self._epoch == FULL_EPOCH else self._partitions
        request.session_id, request.session_epoch = self._session_id, self._epoch
        request.topics = _build_topics({place: fetch for place, fetch in wanted.items() if known.get(place) != fetch})
        forgotten: dict[tuple[str, bytes], list[int]] = {}
        for place, fetch in known.items():
            if place not in wanted or wanted[place].topic_id != fetch.topic_id:
                forgotten.setdefault((place.topic, fetch.topic_id), []).append(place.partition)
        request.forgotten_topics_data = [
            ForgottenTopic(topic=name, topic_id=topic_id, partitions=partitions)
            for (name, topic_id), partitions in forgotten.items()
        ]
        self._partitions = dict(wanted)

    def receive(self, response: FetchResponse) -> list[tuple[HistoryPartition, PartitionData]]:
        """Return the partitions of a response; none if the session has failed.

        Raises AssertionError or KeyError for a response with other partitions than those of the session.
        """
        if response.error_code:
            self.fail()
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = 0
            return []
        answers = list(self._list_answers(response))
        is_full = self._epoch == FULL_EPOCH
        if is_full and len(answers) != len(self._partitions):
            raise AssertionError(f"a full response has {answers} for {list(self._partitions)}")
        if is_full:
            self._session_id, self._epoch = response.session_id, 1 if response.session_id else FULL_EPOCH
        else:
            self._epoch = self._epoch + 1 if self._epoch < LAST_SESSION_EPOCH else 1
        return answers

    def fail(self) -> None:
        """After a failed request: end this session with the next one, which begins another."""
        self._epoch = FULL_EPOCH

    def _list_answers(self, response: FetchResponse) -> Iterator[tuple[HistoryPartition, PartitionData]]:
        """Yield the answers with their partitions; raises KeyError for one that is not in the session."""
        by_id = {(fetch.topic_id, place.partition): place for place, fetch in self._partitions.items()}
        for topic in response.responses:
            for data in topic.partitions:
                yield by_id[topic.topic_id, data.partition_index], data


def _build_topics(wanted: Mapping[HistoryPartition, WantedFetch]) -> list[FetchTopic]:
    topics: dict[tuple[str, bytes], FetchTopic] = {}
    for place, fetch in wanted.items():
        topic = topics.setdefault(
            (place.topic, fetch.topic_id), FetchTopic(topic=place.topic, topic_id=fetch.topic_id, partitions=[])
        )
        topic.partitions.append(
            FetchPartition(
                partition=place.partition,
                current_leader_epoch=fetch.leader_epoch,
                fetch_offset=fetch.offset,
                partition_max_bytes=fetch.max_bytes,
            )
        )
    return list(topics.values())
