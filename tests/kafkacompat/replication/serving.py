"""A leader in memory: it answers the requests of followers by the rules of Kafka 3.9, through the messages' bytes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from kafkacompat.partitions.fetch_sessions import FetchSessions, WantedPartition
from kafkacompat.wire.apis.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkacompat.wire.apis.offset_for_leader_epoch import (
    EpochEndOffset as EpochAnswer,
)
from kafkacompat.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kafkacompat.wire.compiler import decode_message, encode_message
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Request, Response
from tests.kafkacompat.replication.replica_log import ReplicaLog, topic_id_of

LATEST = -1


class Versions(NamedTuple):
    """The versions that a leader serves."""

    fetch: int = 17
    epochs: int = 4
    offsets: int = 8


class Led(NamedTuple):
    """A partition that a broker leads."""

    log: ReplicaLog
    leader_epoch: int


class ServingBroker:
    """The leader's side of one broker."""

    def __init__(self, versions: Versions, rng: Random, *, session_slots: int = 10) -> None:
        self.versions = versions
        self.led: dict[tuple[str, int], Led] = {}
        self.sessions = FetchSessions(session_slots, rng)
        self.requests: list[Request] = []
        """Every request, as the leader read it."""
        self.errors: dict[tuple[str, int], ErrorCode] = {}
        """Errors to answer for partitions, instead of data."""
        self.positions: dict[tuple[str, int], dict[int, int]] = {}
        """The fetch offset of each follower."""

    def lead(self, log: ReplicaLog, leader_epoch: int) -> None:
        """Lead a partition."""
        log.begin_epoch(leader_epoch)
        self.led[log.topic, log.index] = Led(log, leader_epoch)
        self.positions[log.topic, log.index] = {}

    def serve(self, request: Request, now_ms: int = 0) -> Response:
        """Answer a request; both go through their bytes."""
        apis: dict[type[Request], tuple[int, Callable[[Any, int], Response], type[Response]]] = {
            FetchRequest: (self.versions.fetch, self._fetch, FetchResponse),
            OffsetForLeaderEpochRequest: (self.versions.epochs, self._find_epochs, OffsetForLeaderEpochResponse),
            ListOffsetsRequest: (self.versions.offsets, self._list_offsets, ListOffsetsResponse),
        }
        version, answer, kind = apis[type(request)]
        received: Any = decode_message(type(request), encode_message(request, version), version)
        self.requests.append(received)
        return decode_message(kind, encode_message(answer(received, now_ms), version), version)

    def _find(self, key: tuple[str, int], current_leader_epoch: int) -> ReplicaLog:
        if key in self.errors:
            raise KafkaError(self.errors[key])
        if key not in self.led:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log, leader_epoch = self.led[key]
        if current_leader_epoch not in (-1, leader_epoch):
            older = current_leader_epoch < leader_epoch
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
        return log

    # Fetch

    def _fetch(self, request: FetchRequest, now_ms: int) -> FetchResponse:
        by_topic_id = self.versions.fetch >= 13
        wanted = [
            WantedPartition(
                topic.topic_id if by_topic_id else topic.topic, partition.partition, partition.fetch_offset,
                partition.partition_max_bytes, partition.current_leader_epoch, partition.last_fetched_epoch,
            )
            for topic in request.topics for partition in topic.partitions
        ]  # fmt: skip
        forgotten = [
            (topic.topic_id if by_topic_id else topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        try:
            context = self.sessions.find_context(
                request.session_id, request.session_epoch, wanted, forgotten, by_topic_id=by_topic_id, now_ms=now_ms
            )
        except KafkaError as problem:
            return FetchResponse(error_code=problem.code)
        response = FetchResponse(session_id=context.session_id)
        replica_id = request.replica_state.replica_id if self.versions.fetch >= 15 else request.replica_id
        room = request.max_bytes
        for partition in context.wanted:
            data = self._read(partition, replica_id, room)
            size_bytes = len(data.records or b"")  # type: ignore[arg-type]
            room -= size_bytes
            news = partition.has_news(
                size_bytes=size_bytes,
                error=data.error_code != 0 or data.diverging_epoch.epoch >= 0,
                high_watermark=data.high_watermark,
                log_start_offset=data.log_start_offset,
            )
            if size_bytes and context.session is not None:
                context.session.move_to_end(partition.key)
            if news or not context.incremental:
                response.responses.append(FetchableTopicResponse(topic=self._name(partition.topic), partitions=[data]))
                if by_topic_id:
                    response.responses[-1].topic_id = topic_id_of(self._name(partition.topic))
        return response

    def _name(self, topic: str | bytes) -> str:
        return topic if isinstance(topic, str) else topic.lstrip(b"\x01").decode()

    def _read(self, wanted: WantedPartition, replica_id: int, room: int) -> PartitionData:
        key = (self._name(wanted.topic), wanted.partition)
        data = PartitionData(partition_index=wanted.partition, high_watermark=-1, records=b"")
        try:
            log = self._find(key, wanted.current_leader_epoch)
            if wanted.last_fetched_epoch >= 0:
                epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
                if epoch < 0:
                    raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
                if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
                    data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
                    data.high_watermark = log.high_watermark
                    return data
            if not log.log_start_offset <= wanted.fetch_offset <= log.log_end_offset:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        except KafkaError as problem:
            data.error_code = problem.code
            return data
        self.positions[key][replica_id] = wanted.fetch_offset
        data.records = log.read(wanted.fetch_offset, min(wanted.max_bytes, room)) if room > 0 else b""
        data.high_watermark, data.log_start_offset = log.high_watermark, log.log_start_offset
        return data

    # The other requests

    def _find_epochs(self, request: OffsetForLeaderEpochRequest, now_ms: int) -> OffsetForLeaderEpochResponse:
        response = OffsetForLeaderEpochResponse()
        for topic in request.topics:
            result = OffsetForLeaderTopicResult(topic=topic.topic)
            response.topics.append(result)
            for partition in topic.partitions:
                answer = EpochAnswer(partition=partition.partition)
                result.partitions.append(answer)
                try:
                    log = self._find((topic.topic, partition.partition), partition.current_leader_epoch)
                    answer.leader_epoch, answer.end_offset = log.end_offset_for_epoch(partition.leader_epoch)
                except KafkaError as problem:
                    answer.error_code = problem.code
        return response

    def _list_offsets(self, request: ListOffsetsRequest, now_ms: int) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name, partitions=[self._find_offset(topic.name, wanted) for wanted in topic.partitions]
                )
                for topic in request.topics
            ]
        )

    def _find_offset(self, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
        try:
            log = self._find((topic, wanted.partition_index), wanted.current_leader_epoch)
            offset = log.log_end_offset if wanted.timestamp == LATEST else log.log_start_offset
            if self.versions.offsets:
                answer.offset = offset
            else:
                answer.old_style_offsets = [offset]
        except KafkaError as problem:
            answer.error_code = problem.code
        return answer
