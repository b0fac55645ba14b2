"""DeleteRecords (key 21), v0-2: make a partition begin later.

v1     quota violations are answered before they are enforced
v2     flexible

Offset -1 stands for the high watermark. Only topics whose cleanup.policy contains "delete" may be cut.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred, gatherResults

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError


def handle_delete_records(
    request: DeleteRecordsRequest, context: RequestContext, services: Services
) -> Pending[DeleteRecordsResponse]:
    """Move every log start offset; answer when the new ones would survive a crash."""
    waiting: list[Deferred[None]] = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(topic.name, wanted, services, waiting) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    return Pending(gatherResults(waiting).addCallback(lambda _: response))


def _delete(
    topic: str, wanted: DeleteRecordsPartition, services: Services, waiting: list[Deferred[None]]
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=-1)

    def done(low_watermark: int) -> None:
        result.low_watermark = low_watermark

    def failed(problem: BaseException) -> None:
        result.error_code = error_code_of(problem)

    try:
        partition = services.replica_manager.find(topic, wanted.partition_index)
        if partition.is_internal:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is an internal topic")
        deleting = services.replica_manager.delete_records(partition, wanted.offset)
    except Exception as problem:
        failed(problem)
    else:
        waiting.append(deleting.addCallbacks(done, lambda failure: failed(failure.value)))
    return result
