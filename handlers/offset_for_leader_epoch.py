"""OffsetForLeaderEpoch (key 23), v0-4: the end offset of an epoch, which shows clients a truncation.

v1     the answer has the epoch that ends there
v2     current_leader_epoch is checked (KIP-320)
v3     the requesting replica's id, or -2
v4     flexible

The answer is the largest epoch up to the requested one, and the offset where the next epoch begins; -1, -1 if there is
none.
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
                partitions=[_find_end_offset(topic.topic, wanted, services) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _find_end_offset(topic: str, wanted: OffsetForLeaderPartition, services: Services) -> EpochEndOffset:
    response = EpochEndOffset(partition=wanted.partition)
    try:
        partition = services.replica_manager.find(topic, wanted.partition)
        partition.check_leads(wanted.current_leader_epoch)
        response.leader_epoch, response.end_offset = partition.end_of_epoch(wanted.leader_epoch)
    except Exception as problem:
        response.error_code = error_code_of(problem)
    return response
