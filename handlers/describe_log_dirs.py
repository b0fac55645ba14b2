"""DescribeLogDirs (key 35), v0-5: the log directories, and how large each partition in them is (KIP-113).

v1     quota violations are answered before they are enforced
v2     flexible
v3     an error for the whole request
v4     the size of the file systems (KIP-827)
v5     directories that get no new partitions (KIP-1066)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twisted.internet.defer import Deferred, gatherResults

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.partitions.directories import Directory
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.replica_manager import ReplicaManager
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.apis.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

Wanted = Mapping[str, frozenset[int]]


def handle_describe_log_dirs(
    request: DescribeLogDirsRequest, context: RequestContext, services: Services
) -> Pending[DescribeLogDirsResponse]:
    """Describe every directory with the requested partitions."""
    wanted = None if request.topics is None else {topic.topic: frozenset(topic.partitions) for topic in request.topics}
    results = [
        Deferred.fromCoroutine(_describe_directory(directory, wanted, services))
        for directory in services.replica_manager.directories
    ]
    return Pending(gatherResults(results).addCallback(lambda described: DescribeLogDirsResponse(results=described)))


async def _describe_directory(directory: Directory, wanted: Wanted | None, services: Services) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=directory.path, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    if directory.offline:
        return result
    try:
        usage = await directory.disk.run(directory.storage.disk_usage)
    except Exception:
        # A disk whose size cannot be read is reported as failed.
        return result
    result.error_code = ErrorCode.NONE
    result.total_bytes, result.usable_bytes = usage
    result.is_cordoned = services.replica_manager.directories.is_cordoned(directory)
    result.topics = await _describe_topics(directory, wanted, services)
    return result


async def _describe_topics(
    directory: Directory, wanted: Wanted | None, services: Services
) -> list[DescribeLogDirsTopic]:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    described = _describe_partitions(directory, wanted, services.replica_manager)
    async for item in yield_in_turns(services.clock, described):
        if item is not None:
            topic, partition = item
            topics.setdefault(topic, []).append(partition)
    return [DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in topics.items()]


def _describe_partitions(
    directory: Directory, wanted: Wanted | None, replicas: ReplicaManager
) -> Iterator[tuple[str, DescribeLogDirsPartition] | None]:
    """Yield the requested partitions in a directory, and None for each other one, so that each step is short."""
    for partition in list(replicas) if wanted is None else _find_partitions(wanted, replicas):
        if partition is None or replicas.directories.find_home((partition.topic, partition.index)) is not directory:
            yield None
            continue
        size_bytes = partition.log.size_bytes
        yield partition.topic, DescribeLogDirsPartition(partition_index=partition.index, partition_size=size_bytes)
    for move in list(replicas.moves):
        topic, index = move.partition.topic, move.partition.index
        if move.target is directory and (wanted is None or index in wanted.get(topic, ())):
            yield (
                topic,
                DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=move.copy.size_bytes,
                    offset_lag=move.offset_lag,
                    is_future_key=True,
                ),
            )


def _find_partitions(wanted: Wanted, replicas: ReplicaManager) -> Iterator[Partition | None]:
    for topic, indexes in wanted.items():
        for index in indexes:
            try:
                yield replicas.find(topic, index)
            except KafkaError:
                yield None
