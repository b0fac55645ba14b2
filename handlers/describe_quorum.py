"""DescribeQuorum (key 55), v0-2: the voters of the metadata quorum and their progress (KIP-595).

v1     the time of each replica's last fetch (KIP-836)
v2     directory ids, listeners and messages (KIP-853)

Here the metadata is a store on this node, not a replicated log. The response describes a quorum of this node alone; its
"offsets" count how often the metadata was published since the start.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kafkacompat.wire.apis.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Node,
    PartitionDataResponse,
    ReplicaState,
    TopicDataResponse,
)
from kafkacompat.wire.errors import ErrorCode

CONTROLLER_EPOCH = 1
"""There has been one controller only; the metadata store has the same epoch."""


def handle_describe_quorum(
    request: DescribeQuorumRequest, context: RequestContext, services: Services
) -> DescribeQuorumResponse:
    """Describe the quorum, if the request names only that."""
    asked = [
        (topic.topic_name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    ]
    is_known = asked == [(CLUSTER_METADATA_TOPIC, 0)]
    topics = [
        TopicDataResponse(
            topic_name=topic.topic_name,
            partitions=[
                _describe_quorum(services)
                if is_known
                else _build_unknown_partition(topic.topic_name, partition.partition_index)
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    nodes = [Node(node_id=services.node_id)] if is_known else []
    return DescribeQuorumResponse(error_message=None, topics=topics, nodes=nodes)


def _describe_quorum(services: Services) -> PartitionDataResponse:
    end_offset, now_ms = services.metadata.image.version, services.now_ms()
    voter = ReplicaState(
        replica_id=services.node_id,
        log_end_offset=end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return PartitionDataResponse(
        error_message=None,
        leader_id=services.node_id,
        leader_epoch=CONTROLLER_EPOCH,
        high_watermark=end_offset,
        current_voters=[voter],
    )


def _build_unknown_partition(topic: str, index: int) -> PartitionDataResponse:
    return PartitionDataResponse(
        partition_index=index,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=f"only {CLUSTER_METADATA_TOPIC}-0 alone has a quorum, not {topic}-{index}",
    )
