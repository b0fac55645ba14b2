"""DescribeTopicPartitions (key 75), v0: topics in the order of their names, page by page (KIP-966).

Eligible leader replicas are replicas outside the ISR that have lost nothing; only KRaft controllers know them.
"""

from __future__ import annotations

from kafkacompat.handlers.authorized_operations import TOPIC_OPERATIONS
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.endpoints import ClusterSight
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.image import PartitionImage
from kafkacompat.metadata.topic_names import is_internal, missing_topic_error
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.apis.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kafkacompat.wire.errors import ErrorCode


def handle_describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: RequestContext, services: Services
) -> Pending[DescribeTopicPartitionsResponse]:
    """Describe topics from the cursor on, until the page is full."""
    return answer_in_order(_describe_topics(request, context, services))


async def _describe_topics(
    request: DescribeTopicPartitionsRequest, context: RequestContext, services: Services
) -> DescribeTopicPartitionsResponse:
    names = {topic.name for topic in request.topics}
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
        return _build_error(request)
    limit = max(min(services.config.int("max.request.partition.size.limit"), request.response_partition_limit), 1)
    page = _TopicPage(ClusterSight(context, services), limit, skip_unknown=not names)
    async for name in yield_in_turns(services.clock, sorted(names or services.metadata.image.topics)):
        if cursor is None or name >= cursor.topic_name:
            page.add(name, cursor.partition_index if cursor is not None and name == cursor.topic_name else 0)
        if page.response.next_cursor is not None:
            break
    return page.response


def _build_error(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    code = ErrorCode.INVALID_REQUEST
    topics = [DescribeTopicPartitionsResponseTopic(error_code=code, name=topic.name) for topic in request.topics]
    return DescribeTopicPartitionsResponse(topics=topics)


class _TopicPage:
    """A response of at most ``limit`` partitions; ``next_cursor`` is the first that did not fit."""

    def __init__(self, sight: ClusterSight, limit: int, *, skip_unknown: bool) -> None:
        self.response = DescribeTopicPartitionsResponse()
        self._sight = sight
        self._left = limit
        self._skip_unknown = skip_unknown

    def add(self, name: str, first: int) -> None:
        """Add a topic's partitions from *first* on, as far as the page has room."""
        if self._left == 0:
            self.response.next_cursor = Cursor(topic_name=name, partition_index=0)
            return
        topic = self._sight.image.topics.get(name)
        if topic is None:
            if not self._skip_unknown:
                self.response.topics.append(_build_unknown_topic(name))
            return
        partitions = topic.partitions[first : first + self._left]
        self._left -= len(partitions)
        self.response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=is_internal(name),
                partitions=[self._describe_partition(partition) for partition in partitions],
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        if first + len(partitions) < len(topic.partitions):
            self.response.next_cursor = Cursor(topic_name=name, partition_index=first + len(partitions))

    def _describe_partition(self, partition: PartitionImage) -> DescribeTopicPartitionsResponsePartition:
        leader, _ = self._sight.find_leader(partition)
        return DescribeTopicPartitionsResponsePartition(
            partition_index=partition.partition,
            leader_id=leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=list(partition.replicas),
            isr_nodes=list(partition.in_sync_replicas),
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=self._sight.list_offline(partition),
        )


def _build_unknown_topic(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=missing_topic_error(name),
        name=name,
        is_internal=is_internal(name),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
