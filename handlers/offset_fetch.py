"""OffsetFetch (key 9), v0-10: the committed offsets of groups.

v0     offsets that OffsetCommit v0 stored, without metadata; error 3 if there is no offset or no such partition
v2     null topics: every partition with an offset; a field for the group's error
v3     throttle time
v5     leader epochs (KIP-320)
v6     flexible
v7     require_stable: UNSTABLE_OFFSET_COMMIT for a partition while an open transaction may commit it (KIP-447)
v8     several groups (KIP-709), each with its own error
v9     member id and epoch, for consumer groups (KIP-848); a classic group ignores them
v10    topics by id (KIP-848)

From v1 on a partition without an offset has offset -1 and no error, also in an unknown group. If a group is named several
times, the last one counts; a partition that is named several times is answered once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from twisted.internet.defer import Deferred

from kafkacompat.groups.commits import FetchedOffsets
from kafkacompat.groups.committed_offset import CommittedOffset
from kafkacompat.groups.offset_table import OffsetTable
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.waiting import answer_when_ready
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
    """Return each group's offsets, after the commits in progress."""
    if context.api_version == 0:
        return Pending(Deferred.fromCoroutine(_fetch_from_metadata_store(request, services)))
    groups = [
        _fetch_group(wanted, request.require_stable, context, services)
        for wanted in _parse_groups(request, context.api_version)
    ]
    return answer_when_ready(groups, partial(_build_response, context.api_version))


async def _fetch_from_metadata_store(request: OffsetFetchRequest, services: Services) -> OffsetFetchResponse:
    """Answer a request of version 0."""
    image = services.metadata.image
    existing = [
        (topic.name, index)
        for topic in request.topics or ()
        for index in topic.partition_indexes
        if image.partition(topic.name, index) is not None
    ]
    stored = await services.coordinators.stored_offsets.fetch(request.group_id, existing)
    absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if not isinstance(stored, ErrorCode) else stored
    offsets = {} if isinstance(stored, ErrorCode) else stored
    return OffsetFetchResponse(topics=[_answer_stored_topic(topic, offsets, absent) for topic in request.topics or ()])


def _answer_stored_topic(
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


def _parse_groups(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """Return the requested groups in the form of version 8."""
    if version >= SEVERAL_GROUPS_VERSION:
        return list({group.group_id: group for group in request.groups}.values())
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def _fetch_group(
    wanted: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext, services: Services
) -> OffsetFetchResponseGroup | Deferred[OffsetFetchResponseGroup]:
    group = _GroupFetch(wanted, require_stable, context.api_version, services.metadata)
    fetched = services.coordinators.groups.fetch_offsets(wanted.group_id, wanted.member_id, wanted.member_epoch)
    return fetched.addCallback(group.build_response) if isinstance(fetched, Deferred) else group.build_response(fetched)


class _GroupFetch:
    """The request for one group; ``_answered`` holds the partitions in the response so far."""

    def __init__(
        self, wanted: OffsetFetchRequestGroup, require_stable: bool, version: int, metadata: ImageHolder
    ) -> None:
        self._wanted = wanted
        self._require_stable = require_stable
        self._by_id = version >= TOPIC_ID_VERSION
        self._has_group_error = version >= TOP_LEVEL_ERROR_VERSION
        self._metadata = metadata
        self._answered: set[tuple[str, int]] = set()

    def build_response(self, fetched: FetchedOffsets) -> OffsetFetchResponseGroup:
        wanted = self._wanted
        if fetched.error_code:
            failed = [_build_error_topic(topic, fetched.error_code) for topic in wanted.topics or ()]
            return OffsetFetchResponseGroup(
                group_id=wanted.group_id,
                error_code=fetched.error_code,
                topics=[] if self._has_group_error else failed,
            )
        if wanted.topics is None:
            topics = list(self._answer_all_topics(fetched.offsets))
        else:
            topics = [self._answer_topic(topic, fetched.offsets) for topic in wanted.topics]
        return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics)

    def _answer_topic(self, wanted: OffsetFetchRequestTopics, offsets: OffsetTable) -> OffsetFetchResponseTopics:
        name = wanted.name
        if self._by_id:
            topic = self._metadata.image.topics_by_id.get(wanted.topic_id)
            if topic is None:
                return _build_error_topic(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
            name = topic.name
        partitions = []
        for index in wanted.partition_indexes:
            if (name, index) in self._answered:
                continue
            self._answered.add((name, index))
            committed = offsets.get(name, index)
            if committed is None or not committed.may_be_of_topic(wanted.topic_id):
                committed = NO_OFFSET
            partitions.append(self._answer_partition(name, index, committed, offsets))
        return OffsetFetchResponseTopics(name=name, topic_id=wanted.topic_id, partitions=partitions)

    def _answer_all_topics(self, offsets: OffsetTable) -> Iterator[OffsetFetchResponseTopics]:
        """Yield every topic with offsets; if the client uses topic ids, a deleted topic has none and is left out."""
        for name, partitions in offsets.by_topic.items():
            topic = self._metadata.image.topics.get(name)
            if topic is None and self._by_id:
                continue
            yield OffsetFetchResponseTopics(
                name=name,
                topic_id=topic.topic_id if topic else ZERO_UUID,
                partitions=[
                    self._answer_partition(name, index, committed, offsets) for index, committed in partitions.items()
                ],
            )

    def _answer_partition(
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


def _build_error_topic(wanted: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=wanted.name,
        topic_id=wanted.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=code)
            for index in wanted.partition_indexes
        ],
    )


def _build_response(version: int, groups: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
    if version >= SEVERAL_GROUPS_VERSION:
        return OffsetFetchResponse(groups=groups)
    only = groups[0]
    return OffsetFetchResponse(error_code=only.error_code, topics=[_as_old_topic(topic) for topic in only.topics])


def _as_old_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
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
