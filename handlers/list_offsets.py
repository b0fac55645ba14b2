"""ListOffsets (key 2), v0-11: for each partition, the offset at a time or at a named position.

timestamp >= 0   offset and timestamp of the first record at or after it, or -1, -1 if there is none
-1 latest        the high watermark, or the last stable offset for read_committed
-2 earliest      the log start offset
-3 (v7)          the record with the largest timestamp
-4 (v8)          the earliest offset on local disk, which without tiered storage is -2
-5 (v9), -6 (v11)  positions in tiered storage, which is not served, so -1

From v5 on clients get OFFSET_NOT_AVAILABLE for an offset that a leader cannot tell: a new one (KIP-207), or one whose
in-sync followers have stopped fetching. Before they get LEADER_NOT_AVAILABLE. For a replica the latest offset is the log's
end.

v4 adds leader epochs, v6 is flexible, v10 adds a timeout for tiered storage.
A search by time reads the log, so it runs in the disk thread.

v0 is older than timestamps in records. It lists the base offsets of segments that were last written at or before the
time, and the log end offset, which counts as written now; newest first, up to the requested number. -1 lists all of
them, -2 the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from twisted.internet.defer import Deferred, gatherResults

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log.log import FoundRecord
from kafkacompat.timers import steady_ms
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
OFFSET_NOT_AVAILABLE_VERSION = 5
CONSUMER_ID, DEBUGGING_ID = -1, -2
"""Replica ids of clients: the second one is answered by followers too."""

OffsetResult: TypeAlias = "FoundRecord | None"


class OffsetQuery(NamedTuple):
    """A request for offsets at a time: of a client, up to the last stable offset if ``committed``, or of a replica."""

    is_of_client: bool
    committed: bool
    now_ms: int


OffsetLookup: TypeAlias = "Callable[[Partition, OffsetQuery], OffsetResult | Deferred[OffsetResult]]"


def _look_up_latest(partition: Partition, query: OffsetQuery) -> OffsetResult:
    if not query.is_of_client:
        return FoundRecord(partition.log.log_end_offset, -1, partition.leader_epoch)
    partition.check_offsets_available(query.now_ms)
    return FoundRecord(partition.end_offset(committed=query.committed), -1, partition.leader_epoch)


def _look_up_max_timestamp(partition: Partition, query: OffsetQuery) -> Deferred[OffsetResult]:
    return _check_found(partition, query, partition.find_max_timestamp(committed=query.committed))


def _check_found(partition: Partition, query: OffsetQuery, finding: Deferred[OffsetResult]) -> Deferred[OffsetResult]:
    """Fail where no offset is found because the high watermark is not known yet."""

    def check(result: OffsetResult) -> OffsetResult:
        if result is None and query.is_of_client:
            partition.check_offsets_available(query.now_ms)
        return result

    return finding.addCallback(check)


def _look_up_earliest(partition: Partition, _query: OffsetQuery) -> OffsetResult:
    offset = partition.log.log_start_offset
    return FoundRecord(offset, -1, partition.log.leader_epochs.epoch_for_offset(offset))


def _look_up_nothing(_partition: Partition, _query: OffsetQuery) -> OffsetResult:
    return None


# requested timestamp -> (first version that has it, look-up)
LOOKUPS: dict[int, tuple[int, OffsetLookup]] = {
    LATEST: (1, _look_up_latest),
    EARLIEST: (1, _look_up_earliest),
    -3: (7, _look_up_max_timestamp),
    -4: (8, _look_up_earliest),
    -5: (9, _look_up_nothing),
    -6: (11, _look_up_nothing),
}


def handle_list_offsets(
    request: ListOffsetsRequest, context: RequestContext, services: Services
) -> ListOffsetsResponse | Pending[ListOffsetsResponse]:
    """Look up every partition; answer when all results are known."""
    if context.api_version == 0:
        listing = _ListSegments(request, services)
        return ListOffsetsResponse(topics=[listing.answer_topic(topic) for topic in request.topics])
    lookup = _ListOffsets(request, context, services)
    response = ListOffsetsResponse(topics=[lookup.answer_topic(topic) for topic in request.topics])
    if not lookup.waiting:
        return response
    return Pending(gatherResults(lookup.waiting).addCallback(lambda _: response))


class _ListOffsets:
    """One request from version 1 on; ``waiting`` collects the searches in progress."""

    def __init__(self, request: ListOffsetsRequest, context: RequestContext, services: Services) -> None:
        self._version = context.api_version
        self._query = OffsetQuery(
            request.replica_id == CONSUMER_ID, request.isolation_level == READ_COMMITTED, steady_ms(services.clock)
        )
        self._only_from_leader = request.replica_id != DEBUGGING_ID
        self._replicas = services.replica_manager
        self.waiting: list[Deferred[Any]] = []
        self._duplicates = _list_duplicates(request)

    def answer_topic(self, topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
        # A duplicate partition is answered once, with an error.
        once = {wanted.partition_index: wanted for wanted in topic.partitions}
        partitions = [self._answer_partition(topic.name, wanted) for wanted in once.values()]
        return ListOffsetsTopicResponse(name=topic.name, partitions=partitions)

    def _answer_partition(self, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        response = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
        try:
            answer = self._look_up(topic, wanted)
        except Exception as problem:
            self._fill_error(response, problem)
        else:
            if isinstance(answer, Deferred):
                answer.addCallbacks(
                    lambda result: _fill_offset(response, result),
                    lambda failure: self._fill_error(response, failure.value),
                )
                self.waiting.append(answer)
            else:
                _fill_offset(response, answer)
        return response

    def _fill_error(self, response: ListOffsetsPartitionResponse, problem: BaseException) -> None:
        code = error_code_of(problem)
        if code is ErrorCode.OFFSET_NOT_AVAILABLE and self._version < OFFSET_NOT_AVAILABLE_VERSION:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        response.error_code = code

    def _look_up(self, topic: str, wanted: ListOffsetsPartition) -> OffsetResult | Deferred[OffsetResult]:
        _check_not_duplicate(topic, wanted, self._duplicates)
        partition = self._replicas.find(topic, wanted.partition_index)
        if self._only_from_leader:
            partition.check_leads(wanted.current_leader_epoch)
        else:
            partition.check_epoch(wanted.current_leader_epoch)
        if wanted.timestamp >= 0:
            finding = partition.find_timestamp(wanted.timestamp, committed=self._query.committed)
            return _check_found(partition, self._query, finding)
        since_version, place = LOOKUPS.get(wanted.timestamp, (None, _look_up_nothing))
        if since_version is None or self._version < since_version:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"timestamp {wanted.timestamp} has no meaning in this version"
            )
        return place(partition, self._query)


def _list_duplicates(request: ListOffsetsRequest) -> set[tuple[str, int]]:
    keys = [(topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions]
    return {key for key, count in Counter(keys).items() if count > 1}


def _check_not_duplicate(topic: str, wanted: ListOffsetsPartition, duplicates: set[tuple[str, int]]) -> None:
    if (topic, wanted.partition_index) in duplicates:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{topic}-{wanted.partition_index} is named more than once")


def _fill_offset(response: ListOffsetsPartitionResponse, result: OffsetResult) -> None:
    if result is not None:
        response.offset, response.timestamp, response.leader_epoch = result


# Version 0


class _ListSegments:
    """One request of version 0, which lists the base offsets of segments."""

    def __init__(self, request: ListOffsetsRequest, services: Services) -> None:
        self._services = services
        self._duplicates = _list_duplicates(request)

    def answer_topic(self, topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
        partitions = [self._answer_partition(topic.name, wanted) for wanted in topic.partitions]
        return ListOffsetsTopicResponse(name=topic.name, partitions=partitions)

    def _answer_partition(self, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        response = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
        try:
            # Otherwise a small request could list a thousand segments a thousand times.
            _check_not_duplicate(topic, wanted, self._duplicates)
            response.old_style_offsets = _list_segment_offsets(topic, wanted, self._services)
        except Exception as problem:
            response.error_code = error_code_of(problem)
        return response


def _list_segment_offsets(topic: str, wanted: ListOffsetsPartition, services: Services) -> list[int]:
    if wanted.timestamp < EARLIEST:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {wanted.timestamp} has no meaning in this version")
    partition = services.replica_manager.find(topic, wanted.partition_index)
    partition.check_leads(-1)
    if wanted.max_num_offsets < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{wanted.max_num_offsets} offsets cannot be listed")
    starts = _select_starts(partition.segment_starts(services.now_ms()), wanted.timestamp)
    newest = starts[::-1][: wanted.max_num_offsets]
    return [offset for offset, _ in newest]


def _select_starts(starts: list[tuple[int, int]], timestamp: int) -> list[tuple[int, int]]:
    """Return the starts up to the last one that was written no later than *timestamp*; changes *starts*."""
    if timestamp == EARLIEST:
        return starts[:1]
    while starts and timestamp != LATEST and starts[-1][1] > timestamp:
        starts.pop()
    return starts
