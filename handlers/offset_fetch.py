"""OffsetFetch (key 9), v0-10: how far groups have read.

v0     what OffsetCommit v0 stored, without metadata; error 3 where there is none or no such partition
v2     null topics: every partition with an offset; errors of the group are told at the top
v3     throttle time
v5     leader epochs (KIP-320)
v6     flexible
v7     require_stable: UNSTABLE_OFFSET_COMMIT of a partition while a transaction is open that may commit it (KIP-447)
v8     several groups (KIP-709), each with its own error
v9     member id and epoch, for consumer groups (KIP-848); nothing to a classic group
v10    topics by id (KIP-848)

From v1 on a partition without an offset, of a known group or not, has offset -1 and no error. Of a group named several
times the last one counts; a partition named several times is answered once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from twisted.internet.defer import Deferred

from kafkacompat.groups.commits import FetchedOffsets
from kafkacompat.groups.committed_offset import CommittedOffset
from kafkacompat.groups.offset_table import OffsetTable
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.waiting import respond
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import ZERO_UUID

TOP_LEVEL_ERROR_VERSION = 2
SEVERAL_GROUPS_VERSION = 8
TOPIC_ID_VERSION = 10

NO_OFFSET = CommittedOffset(offset=-1, leader_epoch=-1, metadata="", commit_timestamp_ms=-1)


def handle_offset_fetch(
    request: OffsetFetchRequest, context: RequestContext, services: Services
) -> OffsetFetchResponse | Pending[OffsetFetchResponse]:
    """Read each group's offsets; commits that are on their way are waited for."""
    if context.api_version == 0:
        return Pending(Deferred.fromCoroutine(_stored(request, services)))
    groups = [
        _group(wanted, request.require_stable, context, services) for wanted in _wanted(request, context.api_version)
    ]
    return respond(groups, partial(_response, context.api_version))


async def _stored(request: OffsetFetchRequest, services: Services) -> OffsetFetchResponse:
    """Answer in version 0."""
    image = services.metadata.image
    there = [
        (topic.name, index)
        for topic in request.topics or ()
        for index in topic.partition_indexes
        if image.partition(topic.name, index) is not None
    ]
    found = await services.coordinators.stored_offsets.fetch(request.group_id, there)
    absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if not isinstance(found, ErrorCode) else found
    offsets = {} if isinstance(found, ErrorCode) else found
    return OffsetFetchResponse(topics=[_stored_topic(topic, offsets, absent) for topic in request.topics or ()])


def _stored_topic(
    wanted: OffsetFetchRequestTopic, offsets: Mapping[tuple[str, int], int], absent: ErrorCode
) -> OffsetFetchResponseTopic:
    partitions = []
    for index in wanted.partition_indexes:
        offset = offsets.get((wanted.name, index))
        code = absent if offset is None else ErrorCode.NONE
        partitions.append(
            OffsetFetchResponsePartition(
                partition_index=index, committed_offset=-1 if offset is None else offset, metadata="", error_code=code
            )
        )
    return OffsetFetchResponseTopic(name=wanted.name, partitions=partitions)


def _wanted(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """What is asked for, in the form of version 8."""
    if version >= SEVERAL_GROUPS_VERSION:
        return list({group.group_id: group for group in request.groups}.values())
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def _group(
    wanted: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext, services: Services
) -> OffsetFetchResponseGroup | Deferred[OffsetFetchResponseGroup]:
    group = _Group(wanted, require_stable, context.api_version, services.metadata)
    fetched = services.coordinators.groups.fetch_offsets(wanted.group_id, wanted.member_id, wanted.member_epoch)
    return fetched.addCallback(group.fill) if isinstance(fetched, Deferred) else group.fill(fetched)


class _Group:
    """What is asked of one group; ``_told`` are the partitions in the answer so far."""

    def __init__(
        self, wanted: OffsetFetchRequestGroup, require_stable: bool, version: int, metadata: ImageHolder
    ) -> None:
        self._wanted = wanted
        self._require_stable = require_stable
        self._by_id = version >= TOPIC_ID_VERSION
        self._is_told_at_top = version >= TOP_LEVEL_ERROR_VERSION
        self._metadata = metadata
        self._told: set[tuple[str, int]] = set()

    def fill(self, fetched: FetchedOffsets) -> OffsetFetchResponseGroup:
        wanted = self._wanted
        if fetched.error_code:
            failed = [_failed(topic, fetched.error_code) for topic in wanted.topics or ()]
            return OffsetFetchResponseGroup(
                group_id=wanted.group_id,
                error_code=fetched.error_code,
                topics=[] if self._is_told_at_top else failed,
            )
        if wanted.topics is None:
            topics = list(self._all_topics(fetched.offsets))
        else:
            topics = [self._topic(topic, fetched.offsets) for topic in wanted.topics]
        return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics)

    def _topic(self, wanted: OffsetFetchRequestTopics, offsets: OffsetTable) -> OffsetFetchResponseTopics:
        name = wanted.name
        if self._by_id:
            topic = self._metadata.image.topics_by_id.get(wanted.topic_id)
            if topic is None:
                return _failed(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
            name = topic.name
        partitions = []
        for index in wanted.partition_indexes:
            if (name, index) in self._told:
                continue
            self._told.add((name, index))
            committed = offsets.get(name, index)
            if committed is None or not committed.is_of_topic(wanted.topic_id):
                committed = NO_OFFSET
            partitions.append(self._partition(name, index, committed, offsets))
        return OffsetFetchResponseTopics(name=name, topic_id=wanted.topic_id, partitions=partitions)

    def _all_topics(self, offsets: OffsetTable) -> Iterator[OffsetFetchResponseTopics]:
        """Every topic with offsets; asked for by id, a topic that is gone cannot be named and is left out."""
        for name, partitions in offsets.by_topic.items():
            topic = self._metadata.image.topics.get(name)
            if topic is None and self._by_id:
                continue
            yield OffsetFetchResponseTopics(
                name=name,
                topic_id=topic.topic_id if topic else ZERO_UUID,
                partitions=[self._partition(name, *each, offsets) for each in partitions.items()],
            )

    def _partition(
        self, topic: str, index: int, committed: CommittedOffset, offsets: OffsetTable
    ) -> OffsetFetchResponsePartitions:
        code = ErrorCode.NONE
        if self._require_stable and (topic, index) in offsets.pending:
            code, committed = ErrorCode.UNSTABLE_OFFSET_COMMIT, NO_OFFSET
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            error_code=code,
        )


def _failed(wanted: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=wanted.name,
        topic_id=wanted.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=code)
            for index in wanted.partition_indexes
        ],
    )


def _response(version: int, groups: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
    if version >= SEVERAL_GROUPS_VERSION:
        return OffsetFetchResponse(groups=groups)
    only = groups[0]
    return OffsetFetchResponse(error_code=only.error_code, topics=[_in_old_form(topic) for topic in only.topics])


def _in_old_form(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=partition.partition_index,
                committed_offset=partition.committed_offset,
                committed_leader_epoch=partition.committed_leader_epoch,
                metadata=partition.metadata,
                error_code=partition.error_code,
            )
            for partition in topic.partitions
        ],
    )
