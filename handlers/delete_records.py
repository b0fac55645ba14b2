"""DeleteRecords (key 21), v0-2: advance a partition's log start offset.

v1     quota violations are answered before they are enforced
v2     flexible

The answer waits until all live replicas have moved their log start offsets, at most for the request's timeout.
Offset -1 stands for the high watermark. Only topics whose cleanup.policy contains "delete" are accepted. If a partition is
named several times, the last one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from twisted.internet.defer import Deferred, gatherResults, maybeDeferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.partitions.partition import Partition
from kafkacompat.wire.apis.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

Outcome = TypeVar("Outcome")


def handle_delete_records(
    request: DeleteRecordsRequest, context: RequestContext, services: Services
) -> Pending[DeleteRecordsResponse]:
    """Advance every log start offset; answer when the new ones would survive a crash, on all live replicas."""
    wanted = {
        (topic.name, partition.partition_index): partition.offset
        for topic in request.topics
        for partition in topic.partitions
    }
    results = [_delete_from_partition(services, *name, offset, request.timeout_ms) for name, offset in wanted.items()]
    return Pending(
        gatherResults(results).addCallback(lambda deletions: _build_response([name for name, _ in wanted], deletions))
    )


def _delete_from_partition(
    services: Services, topic: str, index: int, offset: int, timeout_ms: int
) -> Deferred[DeleteRecordsPartitionResult]:
    def delete() -> Deferred[int]:
        partition = services.replica_manager.find(topic, index)
        if partition.is_internal:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is an internal topic")
        partition.check_leads(-1)
        deleting = services.replica_manager.delete_records(partition, offset)
        return deleting.addCallback(lambda start: wait(partition, start if offset < 0 else offset))

    def wait(partition: Partition, start_offset: int) -> int | Deferred[int]:
        progress = partition.progress
        waiting = progress.wait_for_deletion(start_offset)
        if waiting is None:
            return progress.low_watermark()
        deadline = services.clock.callLater(max(0, timeout_ms) / 1000, expire, waiting)

        def stop(outcome: Outcome) -> Outcome:
            if deadline.active():
                deadline.cancel()
            return outcome

        return waiting.addBoth(stop).addCallback(lambda _: progress.low_watermark())

    def expire(waiting: Deferred[None]) -> None:
        waiting.errback(KafkaError(ErrorCode.REQUEST_TIMED_OUT, "a replica has not deleted its records in time"))

    def result(low_watermark: int = -1, code: ErrorCode = ErrorCode.NONE) -> DeleteRecordsPartitionResult:
        return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=code)

    return maybeDeferred(delete).addCallbacks(
        lambda low_watermark: result(low_watermark), lambda failure: result(code=error_code_of(failure.value))
    )


def _build_response(names: Sequence[str], results: Sequence[DeleteRecordsPartitionResult]) -> DeleteRecordsResponse:
    topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for name, result in zip(names, results, strict=True):
        topics.setdefault(name, []).append(result)
    return DeleteRecordsResponse(
        topics=[DeleteRecordsTopicResult(name=name, partitions=partitions) for name, partitions in topics.items()]
    )
