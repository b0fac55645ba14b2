"""AlterReplicaLogDirs (key 34), v0-2: move partitions between this broker's log directories (KIP-113).

v1     quota violations are answered before they are enforced
v2     flexible

The answer for a partition comes when its move has begun; DescribeLogDirs reports the progress. If a partition is named with
several directories, the last one counts.
"""

from __future__ import annotations

from functools import partial

from twisted.internet.defer import Deferred, maybeDeferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.handlers.waiting import answer_when_ready
from kafkacompat.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kafkacompat.wire.errors import ErrorCode


def handle_alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: RequestContext, services: Services
) -> AlterReplicaLogDirsResponse | Pending[AlterReplicaLogDirsResponse]:
    """Begin or cancel each move."""
    wanted = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    codes = [_move_partition(services, *name, path) for name, path in wanted.items()]
    return answer_when_ready(codes, partial(_build_response, list(wanted)))


def _move_partition(services: Services, topic: str, index: int, path: str) -> Deferred[ErrorCode]:
    moving = maybeDeferred(services.replica_manager.move, topic, index, path)
    return moving.addCallbacks(lambda _: ErrorCode.NONE, lambda failure: error_code_of(failure.value))


def _build_response(names: list[tuple[str, int]], codes: list[ErrorCode]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, index), code in zip(names, codes, strict=True):
        result = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
        topics.setdefault(topic, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=parts) for name, parts in topics.items()]
    )
