"""OffsetCommit (key 8), v0-10: store a group's offsets.

v0     names no member; offsets go to the metadata store, where OffsetFetch v0 reads them (`groups/stored_offsets`)
v1     goes to the group's coordinator; each offset may carry its commit time
v2-4   the commit may have a retention time
v3     throttle time
v6     leader epochs (KIP-320)
v7     static members (KIP-345)
v8     flexible
v9     a member of a consumer group may send its epoch (KIP-848); an unknown group is GROUP_ID_NOT_FOUND instead of
       ILLEGAL_GENERATION
v10    topics by id (KIP-848)

Each partition that does not exist gets its own error; an error of the group applies to all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.groups.committed_offset import NO_TIMESTAMP
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.image import TopicImage
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.wire.apis.txn_offset_commit import TxnOffsetCommitRequestPartition

GROUP_ID_NOT_FOUND_VERSION = 9
EPOCH_VERSION = 9
TOPIC_ID_VERSION = 10


def handle_offset_commit(
    request: OffsetCommitRequest, context: RequestContext, services: Services
) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
    """Commit the offsets; answer when they are in the log."""
    commit = _OffsetCommit(request, context, services)
    response = OffsetCommitResponse(topics=[commit.answer_topic(topic) for topic in request.topics])
    if not commit.offsets:
        return response
    if context.api_version == 0:
        return answer_in_order(commit.commit_to_metadata_store(response))
    identity = SenderIdentity(
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        knows_epochs=context.api_version >= EPOCH_VERSION,
    )
    codes = services.coordinators.groups.commit(request.group_id, identity, commit.offsets, request.retention_time_ms)
    if isinstance(codes, Deferred):
        return Pending(codes.addCallback(commit.fill_codes, response))
    return commit.fill_codes(codes, response)


class _OffsetCommit:
    """One request; ``offsets`` holds the offsets of existing partitions, ``_answers`` their results."""

    def __init__(self, request: OffsetCommitRequest, context: RequestContext, services: Services) -> None:
        self.offsets: list[OffsetToCommit] = []
        self._answers: list[OffsetCommitResponsePartition] = []
        self._group_id = request.group_id
        self._stored_offsets = services.coordinators.stored_offsets
        self._version = context.api_version
        self._image = services.metadata.image

    def answer_topic(self, topic: OffsetCommitRequestTopic) -> OffsetCommitResponseTopic:
        by_id = self._version >= TOPIC_ID_VERSION
        image = self._image.topics_by_id.get(topic.topic_id) if by_id else self._image.topics.get(topic.name)
        missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[self._answer_partition(image, partition, missing) for partition in topic.partitions],
        )

    def _answer_partition(
        self, topic: TopicImage | None, partition: OffsetCommitRequestPartition, missing: ErrorCode
    ) -> OffsetCommitResponsePartition:
        index = partition.partition_index
        answer = OffsetCommitResponsePartition(partition_index=index)
        if topic is None:
            answer.error_code = missing
        elif not 0 <= index < len(topic.partitions):
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            self._answers.append(answer)
            self.offsets.append(parse_offset(topic, partition, partition.commit_timestamp))
        return answer

    async def commit_to_metadata_store(self, response: OffsetCommitResponse) -> OffsetCommitResponse:
        return self.fill_codes(await self._stored_offsets.commit(self._group_id, self.offsets), response)

    def fill_codes(self, codes: list[ErrorCode], response: OffsetCommitResponse) -> OffsetCommitResponse:
        for answer, code in zip(self._answers, codes, strict=True):
            answer.error_code = self._adapt_to_version(code)
        return response

    def _adapt_to_version(self, code: ErrorCode) -> ErrorCode:
        if code is ErrorCode.GROUP_ID_NOT_FOUND and self._version < GROUP_ID_NOT_FOUND_VERSION:
            return ErrorCode.ILLEGAL_GENERATION
        return code


def parse_offset(
    topic: TopicImage,
    partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    commit_timestamp_ms: int = NO_TIMESTAMP,
) -> OffsetToCommit:
    """Return the offset that a request commits for a partition."""
    return OffsetToCommit(
        topic=topic.name,
        topic_id=topic.topic_id,
        partition=partition.partition_index,
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata,
        commit_timestamp_ms=commit_timestamp_ms,
    )
