"""ListOffsets (key 2), v0-11: the offset at a time or at a named place, one a partition.

timestamp >= 0   the first record at or after it: its offset and timestamp, or -1, -1 if there is none
-1 latest        the high watermark, or the last stable offset for read_committed
-2 earliest      the log start offset
-3 (v7)          the record with the largest timestamp
-4 (v8)          the earliest offset on local disk, which without tiered storage is -2
-5 (v9), -6 (v11)  places in tiered storage: there is none, so -1

v4 adds leader epochs, v6 is flexible, v10 adds a timeout for tiered storage.
Searching by time reads the log, so it runs in the disk thread.

v0 is older than timestamps in records: it lists where segments begin that were last written at or before the time, and
where the log ends, which was written now; newest first, as many as are wanted. -1 lists all of them, -2 the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

from twisted.internet.defer import Deferred, gatherResults

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log.log import FoundRecord
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

LATEST, EARLIEST = -1, -2
READ_COMMITTED = 1

Found: TypeAlias = "FoundRecord | None"
Place: TypeAlias = "Callable[[Partition, bool], Found | Deferred[Found]]"


def _latest(partition: Partition, committed: bool) -> Found:
    return FoundRecord(partition.end_offset(committed=committed), -1, partition.leader_epoch)


def _latest_time(partition: Partition, committed: bool) -> Deferred[Found]:
    return partition.find_max_timestamp(committed=committed)


def _earliest(partition: Partition, _committed: bool) -> Found:
    offset = partition.log.log_start_offset
    return FoundRecord(offset, -1, partition.log.leader_epochs.epoch_for_offset(offset))


def _nowhere(_partition: Partition, _committed: bool) -> Found:
    return None


# timestamp asked for -> (first version that knows it, where to look)
NAMED_PLACES: dict[int, tuple[int, Place]] = {
    LATEST: (1, _latest),
    EARLIEST: (1, _earliest),
    -3: (7, _latest_time),
    -4: (8, _earliest),
    -5: (9, _nowhere),
    -6: (11, _nowhere),
}


def handle_list_offsets(
    request: ListOffsetsRequest, context: RequestContext, services: Services
) -> ListOffsetsResponse | Pending[ListOffsetsResponse]:
    """Look up every partition; answer when all are known."""
    if context.api_version == 0:
        listing = _Listing(request, services)
        return ListOffsetsResponse(topics=[listing.topic(topic) for topic in request.topics])
    lookup = _Lookup(request, context, services)
    response = ListOffsetsResponse(topics=[lookup.topic(topic) for topic in request.topics])
    if not lookup.waiting:
        return response
    return Pending(gatherResults(lookup.waiting).addCallback(lambda _: response))


class _Lookup:
    """One request on its way; ``waiting`` collects the searches under way."""

    def __init__(self, request: ListOffsetsRequest, context: RequestContext, services: Services) -> None:
        self._version = context.api_version
        self._committed = request.isolation_level == READ_COMMITTED
        self._replicas = services.replica_manager
        self.waiting: list[Deferred[Any]] = []
        self._duplicates = _duplicates(request)

    def topic(self, topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
        # One that is asked for twice is answered once, with an error.
        once = {wanted.partition_index: wanted for wanted in topic.partitions}
        partitions = [self._partition(topic.name, wanted) for wanted in once.values()]
        return ListOffsetsTopicResponse(name=topic.name, partitions=partitions)

    def _partition(self, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        response = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
        try:
            found = self._find(topic, wanted)
        except Exception as problem:
            response.error_code = error_code_of(problem)
        else:
            if isinstance(found, Deferred):
                found.addCallbacks(
                    lambda result: _fill(response, result), lambda failure: _fail(response, failure.value)
                )
                self.waiting.append(found)
            else:
                _fill(response, found)
        return response

    def _find(self, topic: str, wanted: ListOffsetsPartition) -> Found | Deferred[Found]:
        _check_once(topic, wanted, self._duplicates)
        partition = self._replicas.find(topic, wanted.partition_index)
        partition.check_epoch(wanted.current_leader_epoch)
        if wanted.timestamp >= 0:
            return partition.find_timestamp(wanted.timestamp, committed=self._committed)
        since_version, place = NAMED_PLACES.get(wanted.timestamp, (None, _nowhere))
        if since_version is None or self._version < since_version:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"there is no place {wanted.timestamp} in this version")
        return place(partition, self._committed)


def _duplicates(request: ListOffsetsRequest) -> set[tuple[str, int]]:
    keys = [(topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions]
    return {key for key, count in Counter(keys).items() if count > 1}


def _check_once(topic: str, wanted: ListOffsetsPartition, duplicates: set[tuple[str, int]]) -> None:
    if (topic, wanted.partition_index) in duplicates:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{topic}-{wanted.partition_index} is asked for twice")


def _fill(response: ListOffsetsPartitionResponse, found: Found) -> None:
    if found is not None:
        response.offset, response.timestamp, response.leader_epoch = found


def _fail(response: ListOffsetsPartitionResponse, problem: BaseException) -> None:
    response.error_code = error_code_of(problem)


# Version 0


class _Listing:
    """One request of version 0."""

    def __init__(self, request: ListOffsetsRequest, services: Services) -> None:
        self._services = services
        self._duplicates = _duplicates(request)

    def topic(self, topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
        partitions = [self._partition(topic.name, wanted) for wanted in topic.partitions]
        return ListOffsetsTopicResponse(name=topic.name, partitions=partitions)

    def _partition(self, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        response = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
        try:
            # A small request could ask a thousand times for a thousand segments.
            _check_once(topic, wanted, self._duplicates)
            response.old_style_offsets = _offsets(topic, wanted, self._services)
        except Exception as problem:
            response.error_code = error_code_of(problem)
        return response


def _offsets(topic: str, wanted: ListOffsetsPartition, services: Services) -> list[int]:
    if wanted.timestamp < EARLIEST:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"there is no place {wanted.timestamp} in this version")
    partition = services.replica_manager.find(topic, wanted.partition_index)
    if wanted.max_num_offsets < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{wanted.max_num_offsets} offsets cannot be listed")
    starts = _until(partition.segment_starts(services.now_ms()), wanted.timestamp)
    newest = starts[::-1][: wanted.max_num_offsets]
    return [offset for offset, _ in newest]


def _until(starts: list[tuple[int, int]], timestamp: int) -> list[tuple[int, int]]:
    """Those up to the last one that was written no later than *timestamp*."""
    if timestamp == EARLIEST:
        return starts[:1]
    while starts and timestamp != LATEST and starts[-1][1] > timestamp:
        starts.pop()
    return starts
