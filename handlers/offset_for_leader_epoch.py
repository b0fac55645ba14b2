"""OffsetForLeaderEpoch (key 23), v0-4: where an epoch ended, so that a client can see a truncation.

v1     the answer names the epoch that ends
v2     current_leader_epoch is checked (KIP-320)
v3     who asks: a replica's id, or -2
v4     flexible

The answer is the largest epoch not above the one asked for and the offset where the next one begins;
-1, -1 if there is none.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.wire.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle_offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, context: RequestContext, services: Services
) -> OffsetForLeaderEpochResponse:
    """Look up every partition in memory."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_offset(topic.topic, wanted, services) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end_offset(topic: str, wanted: OffsetForLeaderPartition, services: Services) -> EpochEndOffset:
    response = EpochEndOffset(partition=wanted.partition)
    try:
        partition = services.replica_manager.find(topic, wanted.partition)
        partition.check_epoch(wanted.current_leader_epoch)
        response.leader_epoch, response.end_offset = partition.end_of_epoch(wanted.leader_epoch)
    except Exception as problem:
        response.error_code = error_code_of(problem)
    return response
