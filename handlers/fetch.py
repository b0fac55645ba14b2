"""Fetch (key 1), v0-18: read record batches, waiting for them if need be.

v0     message sets of format 0: what the log has is converted (`replication/converted_fetch`)
v1     throttle_time_ms
v2     message sets of format 1, with timestamps
v3     max_bytes for all partitions together
v4     record batches as they are; isolation level, last stable offset
v5     log_start_offset
v6     KAFKA_STORAGE_ERROR is told; before it is NOT_LEADER_OR_FOLLOWER, upon which clients try again
v7     fetch sessions (KIP-227)
v9     current_leader_epoch is checked (KIP-320)
v10    zstd batches may be in the answer; v4-9 get them too, as from Kafka 4
v12    flexible; last_fetched_epoch, diverging_epoch
v13    topics by id (KIP-516)
v15    the replica's id in a tagged field; v17 and v18 add fields that only replicas use

From v4 on records go out as regions of the log files: nothing here reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeAlias

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.partitions.converted_fetch import fetch_converted
from kafkacompat.partitions.fetch_sessions import FetchContext, PartitionKey, TopicKey, WantedPartition
from kafkacompat.partitions.fetching import FetchedPartition, FetchLimits, fetch_partitions, release_all
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.partition_reader import PartitionRead
from kafkacompat.storage.segment import transaction_index
from kafkacompat.timers import make_steps
from kafkacompat.wire.apis.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

BATCHES_VERSION = 4
"""Before it records are message sets."""
TIMESTAMPS_VERSION = 2
"""From it on message sets are of format 1."""
TOTAL_LIMIT_VERSION = 3
STORAGE_ERROR_VERSION = 6
TOPIC_ID_VERSION = 13
READ_COMMITTED = 1

FetchResult: TypeAlias = "FetchResponse | Pending[FetchResponse]"


def handle_fetch(request: FetchRequest, context: RequestContext, services: Services) -> FetchResult:
    """Answer at once where there is enough, else when there is or time is up."""
    by_topic_id = context.api_version >= TOPIC_ID_VERSION
    try:
        fetch_context = services.fetch_sessions.find_context(
            request.session_id,
            request.session_epoch,
            _parse_wanted_partitions(request, by_topic_id),
            _parse_forgotten_partitions(request, by_topic_id),
            by_topic_id=by_topic_id,
            now_ms=services.now_ms(),
        )
    except KafkaError as problem:
        return FetchResponse(error_code=problem.code)

    def find(wanted: WantedPartition) -> Partition:
        return services.replica_manager.find(wanted.topic, wanted.partition)

    def answer(found: list[FetchedPartition]) -> FetchResponse | Deferred[FetchResponse]:
        if context.api_version < STORAGE_ERROR_VERSION:
            found = [_without_storage_error(each) for each in found]
        response = FetchResponse(session_id=fetch_context.session_id)
        telling = make_steps(
            services.clock, _fill_response(response, fetch_context, found, request.isolation_level == READ_COMMITTED)
        )
        if telling is None:
            return response
        return telling.addCallback(lambda _: response).addErrback(_give_up, found)

    limits = _parse_limits(request, context.api_version, services.config.int("fetch.max.bytes"))
    if context.api_version < BATCHES_VERSION:
        magic = 1 if context.api_version >= TIMESTAMPS_VERSION else 0
        reading = fetch_converted(find, fetch_context.wanted, limits, services.clock, services.conversions, magic)
        return _one_at_a_time(reading, answer)
    found = fetch_partitions(find, fetch_context.wanted, limits, services.clock)
    response: FetchResponse | Deferred[Any] = answer(found) if isinstance(found, list) else found.addCallback(answer)
    return Pending(response, abandonable=True) if isinstance(response, Deferred) else response


def _parse_limits(request: FetchRequest, version: int, most_bytes: int) -> FetchLimits:
    """Before there was a limit for all partitions together, each could count on getting something."""
    max_bytes = min(request.max_bytes, most_bytes)
    one_batch_each = version < TOTAL_LIMIT_VERSION
    committed = request.isolation_level == READ_COMMITTED
    return FetchLimits(min(request.min_bytes, max_bytes), max_bytes, request.max_wait_ms, one_batch_each, committed)


def _one_at_a_time(
    reading: Coroutine[Deferred[Any], Any, list[FetchedPartition]],
    answer: Callable[[list[FetchedPartition]], FetchResponse | Deferred[FetchResponse]],
) -> Pending[FetchResponse]:
    """A client's next request starts after its answer: what was converted for it lies only once on the disk."""

    async def answering() -> FetchResponse:
        response = answer(await reading)
        return await response if isinstance(response, Deferred) else response

    pending = answer_in_order(answering())
    pending.abandonable = True
    return pending


def _without_storage_error(each: FetchedPartition) -> FetchedPartition:
    if each.error_code != ErrorCode.KAFKA_STORAGE_ERROR:
        return each
    return each._replace(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _parse_wanted_partitions(request: FetchRequest, by_topic_id: bool) -> list[WantedPartition]:
    return [
        WantedPartition(
            topic.topic_id if by_topic_id else topic.topic,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]


def _parse_forgotten_partitions(request: FetchRequest, by_topic_id: bool) -> list[PartitionKey]:
    return [
        (topic.topic_id if by_topic_id else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


def _fill_response(
    response: FetchResponse, context: FetchContext, found: list[FetchedPartition], committed: bool
) -> Iterator[None]:
    """Fill the answer, with a step for each partition."""
    topic: TopicKey | None = None
    for each in found:
        if _is_told(context, each):
            if each.wanted.topic != topic:
                topic = each.wanted.topic
                response.responses.append(_build_topic(topic))
            response.responses[-1].partitions.append(_partition_data(each, committed))
        yield


def _build_topic(topic: TopicKey) -> FetchableTopicResponse:
    return FetchableTopicResponse(topic=topic) if isinstance(topic, str) else FetchableTopicResponse(topic_id=topic)


def _give_up(failure: Failure, found: list[FetchedPartition]) -> Failure:
    release_all(found)
    return failure


def _is_told(context: FetchContext, each: FetchedPartition) -> bool:
    """Whether a partition belongs into the answer; a session remembers what it told."""
    if context.session is None:
        return True
    read = each.read
    news = each.wanted.has_news(
        size_bytes=each.size_bytes,
        error=each.urgent,
        high_watermark=read.high_watermark if read else -1,
        log_start_offset=read.log_start_offset if read else -1,
    )
    if each.size_bytes and context.incremental:
        context.session.move_to_end(each.wanted.key)
    return news or not context.incremental


def _partition_data(each: FetchedPartition, committed: bool) -> PartitionData:
    index = each.wanted.partition
    if each.read is None:
        return PartitionData(
            partition_index=index,
            error_code=each.error_code,
            high_watermark=-1,
            # As in Kafka.
            aborted_transactions=[] if each.partition is None else None,
            records=b"",
        )
    return _build_partition(index, each.read, committed)


def _build_partition(index: int, read: PartitionRead, committed: bool) -> PartitionData:
    data = PartitionData(
        partition_index=index,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=[_list_aborted_transactions(each) for each in read.aborted] if committed else None,
        records=read.region if read.region is not None else b"",
    )
    if read.diverging_epoch is not None:
        epoch, end_offset = read.diverging_epoch
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return data


def _list_aborted_transactions(transaction: transaction_index.AbortedTransaction) -> AbortedTransaction:
    return AbortedTransaction(producer_id=transaction.producer_id, first_offset=transaction.first_offset)
