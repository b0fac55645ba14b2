"""Fetch (key 1), v0-18: return record batches, and wait for them if there are too few.

v0     message sets of format 0: the log's batches are converted (`partitions/converted_fetch`)
v1     throttle_time_ms
v2     message sets of format 1, with timestamps
v3     max_bytes for all partitions together
v4     record batches as the log has them; isolation level, last stable offset
v5     log_start_offset
v6     KAFKA_STORAGE_ERROR; in older versions it is NOT_LEADER_OR_FOLLOWER, after which clients try again
v7     fetch sessions (KIP-227)
v9     current_leader_epoch is checked (KIP-320)
v10    zstd batches; v4-9 get them too, as from Kafka 4
v11    rack_id: the leader may name a nearer replica, and followers answer consumers (KIP-392)
v12    flexible; last_fetched_epoch, diverging_epoch
v13    topics by id (KIP-516)
v15    the replica's id and broker epoch in a tagged field (KIP-903); v17 and v18 add fields that only Raft uses
v16    an error NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH names the new leader (KIP-951)

From v4 on records are sent as regions of the log files: no code here reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from itertools import chain
from typing import Any, TypeAlias

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.leader_hints import LeaderHints
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.partitions.converted_fetch import fetch_converted
from kafkacompat.partitions.fetch_sessions import FetchContext, FetchSessions, PartitionKey, TopicKey, WantedPartition
from kafkacompat.partitions.fetching import (
    OLD_CONSUMER,
    FetchedPartition,
    FetchLimits,
    FetchReader,
    fetch_partitions,
    release_unsent,
)
from kafkacompat.partitions.leadership import UNKNOWN
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.partition_reader import PartitionRead
from kafkacompat.partitions.replica_progress import FetchingReplica
from kafkacompat.quotas.request_meter import RequestMeter
from kafkacompat.storage.segment import transaction_index
from kafkacompat.timers import make_steps
from kafkacompat.wire.apis.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kafkacompat.wire.connection import measure_response
from kafkacompat.wire.errors import ErrorCode, KafkaError

BATCHES_VERSION = 4
"""From this version on records are batches, before it message sets."""
TIMESTAMPS_VERSION = 2
"""From this version on message sets have format 1, before it format 0."""
TOTAL_LIMIT_VERSION = 3
STORAGE_ERROR_VERSION = 6
FOLLOWER_READ_VERSION = 11
TOPIC_ID_VERSION = 13
REPLICA_STATE_VERSION = 15
LEADER_HINT_VERSION = 16
LEADER_HINT_ERRORS = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
READ_COMMITTED = 1

CONSUMER = FetchReader(reads_followers=True)
Count: TypeAlias = "Callable[[FetchedPartition], None]"
FetchResult: TypeAlias = "FetchResponse | Pending[FetchResponse]"


def handle_fetch(request: FetchRequest, context: RequestContext, services: Services) -> FetchResult:
    """Respond at once if enough can be read, else when enough has arrived or the time is up."""
    by_topic_id = context.api_version >= TOPIC_ID_VERSION
    sessions = (
        services.fetch_sessions if context.tenant is None else services.fetch_sessions.of_instance(context.tenant)
    )
    try:
        fetch_context = sessions.find_context(
            request.session_id,
            request.session_epoch,
            _parse_wanted_partitions(request, by_topic_id),
            _parse_forgotten_partitions(request, by_topic_id),
            by_topic_id=by_topic_id,
            now_ms=services.now_ms(),
        )
    except KafkaError as problem:
        return FetchResponse(error_code=problem.code)

    find = _find_partition(request, context, services)

    reader = _find_reader(request, context, services)
    meter = context.meter
    if meter is not None and reader.replica is not None and is_replica(context, services):
        # The quotas of replication throttle followers.
        meter.exempt()
        meter = None

    def answer(fetched: list[FetchedPartition]) -> FetchResponse | Deferred[FetchResponse]:
        if context.api_version < STORAGE_ERROR_VERSION:
            fetched = [_without_storage_error(outcome) for outcome in fetched]
        response = FetchResponse(session_id=fetch_context.session_id)
        hints = LeaderHints(context, services) if context.api_version >= LEADER_HINT_VERSION else None
        committed = request.isolation_level == READ_COMMITTED
        count = _find_count(reader, services)
        steps = _fill_response(response, fetch_context, fetched, committed, hints, count, notes=meter is None)
        if meter is not None:
            finishing = _finish_metered(
                response, fetch_context, sessions, fetched, count, meter, context.api_version, services
            )
            steps = chain(steps, finishing)
        filling = make_steps(services.clock, steps)
        if filling is None:
            return response
        return filling.addCallback(lambda _: response).addErrback(_release_and_fail, fetched)

    limits = _parse_limits(request, context.api_version, services.config.int("fetch.max.bytes"), meter)
    if context.api_version < BATCHES_VERSION:
        magic = 1 if context.api_version >= TIMESTAMPS_VERSION else 0
        reading = fetch_converted(find, fetch_context.wanted, limits, services.clock, services.conversions, magic)
        return _one_at_a_time(reading, answer)
    fetched = fetch_partitions(find, fetch_context.wanted, limits, services.clock, reader)
    response: FetchResponse | Deferred[Any] = (
        answer(fetched) if isinstance(fetched, list) else fetched.addCallback(answer)
    )
    return Pending(response, abandonable=True) if isinstance(response, Deferred) else response


def _find_partition(
    request: FetchRequest, context: RequestContext, services: Services
) -> Callable[[WantedPartition], Partition]:
    """Return the function that finds what the client wants, and may read."""
    is_follower = _find_replica_id(request, context) >= 0
    if is_follower and services.cluster is not None and services.enclosed is None:
        return _refuse_follower

    def find(wanted: WantedPartition) -> Partition:
        return services.replica_manager.find(wanted.topic, wanted.partition)

    find_allowed = _guard_by_network(find, is_follower, context, services) if services.whitelists.are_set else find
    if services.authorizer is None:
        return find_allowed
    # Without an authorizer a broker does not pay for the guards.
    from kafkacompat.handlers.guards.fetch import guard_find

    return guard_find(find_allowed, is_follower, services.authorizer, context, services)


def _guard_by_network(
    find: Callable[[WantedPartition], Partition], is_follower: bool, context: RequestContext, services: Services
) -> Callable[[WantedPartition], Partition]:
    # Where no topic has a whitelist a broker does not pay for the guards.
    from kafkacompat.handlers.guards.fetch import guard_find
    from kafkacompat.handlers.guards.networks import NetworkRights

    follows = is_follower and is_replica(context, services)
    return guard_find(find, follows, NetworkRights(services.whitelists), context, services)


def _refuse_follower(wanted: WantedPartition) -> Partition:
    """Refuse to let a client of a listener that is not for brokers act as a replica, which would vouch for records."""
    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "followers fetch on the listener between brokers")


def _parse_limits(request: FetchRequest, version: int, most_bytes: int, meter: RequestMeter | None) -> FetchLimits:
    """Return the limits of a request; before v3 nothing limits all partitions together, and each returns a batch."""
    if meter is not None and meter.max_fetch_bytes is not None:
        most_bytes = min(most_bytes, meter.max_fetch_bytes)
    max_bytes = min(request.max_bytes, most_bytes)
    one_batch_each = version < TOTAL_LIMIT_VERSION
    committed = request.isolation_level == READ_COMMITTED
    return FetchLimits(min(request.min_bytes, max_bytes), max_bytes, request.max_wait_ms, one_batch_each, committed)


def _find_replica_id(request: FetchRequest, context: RequestContext) -> int:
    has_state = context.api_version >= REPLICA_STATE_VERSION
    return request.replica_state.replica_id if has_state else request.replica_id


def _find_reader(request: FetchRequest, context: RequestContext, services: Services) -> FetchReader:
    """Return who fetches: a follower gives its broker's id, a consumer from v11 on possibly its rack."""
    version, state = context.api_version, request.replica_state
    replica_id = _find_replica_id(request, context)
    if replica_id >= 0:
        broker_epoch = state.replica_epoch if version >= REPLICA_STATE_VERSION else UNKNOWN
        return FetchReader(FetchingReplica(replica_id, broker_epoch))
    if version < FOLLOWER_READ_VERSION:
        return OLD_CONSUMER
    if not request.rack_id or services.config.optional_string("replica.selector.class") != RACK_AWARE_SELECTOR:
        return CONSUMER
    rack, racks = request.rack_id, {broker.node_id: broker.rack for broker in services.metadata.image.brokers.values()}

    def find_nearest(partition: Partition, offset: int) -> int:
        leading = partition.state.leading
        return UNKNOWN if leading is None else leading.find_nearest_replica(offset, rack, racks)

    return FetchReader(reads_followers=True, find_nearest=find_nearest)


def is_replica(context: RequestContext, services: Services) -> bool:
    """Return whether a client that names the id of a replica may be one, so that the quotas of clients do not count for it.

    Followers fetch on the listener of the brokers, which alone answers Envelopes; with an authorizer they have ClusterAction. The
    clients of an instance are no brokers, whatever rights they have in it.
    """
    if context.tenant is not None:
        return False
    if services.enclosed is None or services.authorizer is None:
        return services.enclosed is not None
    from kafkacompat.handlers.guards.fetch import may_follow

    return may_follow(services.authorizer, context)


def _one_at_a_time(
    reading: Coroutine[Deferred[Any], Any, list[FetchedPartition]],
    answer: Callable[[list[FetchedPartition]], FetchResponse | Deferred[FetchResponse]],
) -> Pending[FetchResponse]:
    """Let the client's next request wait: so the converted records of one response at most are on the disk."""

    async def answering() -> FetchResponse:
        response = answer(await reading)
        return await response if isinstance(response, Deferred) else response

    pending = answer_in_order(answering())
    pending.abandonable = True
    return pending


def _without_storage_error(outcome: FetchedPartition) -> FetchedPartition:
    if outcome.error_code != ErrorCode.KAFKA_STORAGE_ERROR:
        return outcome
    return outcome._replace(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _parse_wanted_partitions(request: FetchRequest, by_topic_id: bool) -> list[WantedPartition]:
    return [
        WantedPartition(
            topic.topic_id if by_topic_id else topic.topic,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
            log_start_offset=partition.log_start_offset,
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


def _find_count(reader: FetchReader, services: Services) -> Count | None:
    """Return the function that counts a partition of a response for the metrics; None without metrics."""
    if services.requests is None:
        return None
    to_replica = reader.replica is not None

    def count(outcome: FetchedPartition) -> None:
        if outcome.partition is not None:
            outcome.partition.traffic.note_fetch(outcome.size_bytes, outcome.error_code != 0, to_replica)

    return count


def _fill_response(
    response: FetchResponse,
    context: FetchContext,
    fetched: list[FetchedPartition],
    committed: bool,
    hints: LeaderHints | None,
    count: Count | None,
    notes: bool,
) -> Iterator[None]:
    """Fill the response, with a step for each partition; with *notes* a session notes what the response says, and it is counted."""
    topic: TopicKey | None = None
    for outcome in fetched:
        if _is_named(context, outcome, notes):
            if outcome.wanted.topic != topic:
                topic = outcome.wanted.topic
                response.responses.append(_build_topic(topic))
            response.responses[-1].partitions.append(_partition_data(outcome, committed, hints))
            if count is not None and notes:
                count(outcome)
        yield
    if hints is not None and hints.addresses:
        response.node_endpoints = [NodeEndpoint(**address._asdict()) for address in hints.addresses.values()]


def _finish_metered(
    response: FetchResponse,
    context: FetchContext,
    sessions: FetchSessions,
    fetched: list[FetchedPartition],
    count: Count | None,
    meter: RequestMeter,
    version: int,
    services: Services,
) -> Iterator[None]:
    """Charge a filled response, and note what it says; that of a client that is throttled is empty instead, as in Kafka.

    The session stays as it was, so that the next response repeats the news. A session that the request has begun is dropped.
    """
    size_bytes = 0
    for measured in measure_response(response, version):
        size_bytes = measured
        yield
    if not meter.charge_fetch(size_bytes, services.clock.seconds()):
        for outcome in fetched:
            if _is_named(context, outcome, notes=True) and count is not None:
                count(outcome)
            yield
        return
    release_unsent(fetched)
    if not context.incremental:
        sessions.discard(context)
    response.session_id = context.session_id
    response.responses, response.node_endpoints = [], []


def _build_topic(topic: TopicKey) -> FetchableTopicResponse:
    return FetchableTopicResponse(topic=topic) if isinstance(topic, str) else FetchableTopicResponse(topic_id=topic)


def _release_and_fail(failure: Failure, fetched: list[FetchedPartition]) -> Failure:
    release_unsent(fetched)
    return failure


def _is_named(context: FetchContext, outcome: FetchedPartition, notes: bool) -> bool:
    """Return whether the response names a partition; a session notes what the response says if *notes* is set."""
    if context.session is None:
        return True
    read = outcome.read
    news = outcome.wanted.has_news(
        size_bytes=outcome.size_bytes,
        error=outcome.urgent,
        high_watermark=read.high_watermark if read else -1,
        log_start_offset=read.log_start_offset if read else -1,
        notes=notes,
    )
    if notes and outcome.size_bytes and context.incremental:
        context.session.move_to_end(outcome.wanted.key)
    return news or not context.incremental


def _partition_data(outcome: FetchedPartition, committed: bool, hints: LeaderHints | None) -> PartitionData:
    if outcome.read is None:
        return _build_refusal(outcome, hints)
    return _build_partition(outcome.wanted.partition, outcome.read, committed)


def _build_refusal(outcome: FetchedPartition, hints: LeaderHints | None) -> PartitionData:
    data = PartitionData(
        partition_index=outcome.wanted.partition,
        error_code=outcome.error_code,
        high_watermark=-1,
        # Kafka sends an empty list for an unknown partition, and null for one that cannot be read.
        aborted_transactions=[] if outcome.partition is None else None,
        records=b"",
    )
    if hints is not None and outcome.error_code in LEADER_HINT_ERRORS:
        leader = hints.find_leader(*outcome.wanted.key)
        if leader is not None:
            data.current_leader = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    return data


def _build_partition(index: int, read: PartitionRead, committed: bool) -> PartitionData:
    data = PartitionData(
        partition_index=index,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=[_list_aborted_transactions(transaction) for transaction in read.aborted]
        if committed
        else None,
        preferred_read_replica=read.preferred_read_replica,
        records=read.region if read.region is not None else b"",
    )
    if read.diverging_epoch is not None:
        epoch, end_offset = read.diverging_epoch
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return data


def _list_aborted_transactions(transaction: transaction_index.AbortedTransaction) -> AbortedTransaction:
    return AbortedTransaction(producer_id=transaction.producer_id, first_offset=transaction.first_offset)
