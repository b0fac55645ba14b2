"""Produce (key 0), v0-13: append one record batch a partition.

v0-2   a message set of format 0 or 1, which becomes a batch; v1 adds the throttle time, v2 the log's time. As in Kafka
       up to 3.9 a batch may come as well, of any codec: some clients do not mind what the version allows
v3-8   fixed-width encoding; v5 adds log_start_offset, v8 the refused records and a message
v9     flexible
v10    an error NOT_LEADER_OR_FOLLOWER names the new leader (KIP-951)
v12    a transaction's partitions need not be added first (KIP-890)
v13    topics by id (KIP-516)

acks=0 has no answer: an error closes the connection, so that the client looks for the leader again.
With one replica acks=1 and acks=-1 are the same: the batch is in the log of the whole in-sync set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from twisted.internet.defer import Deferred, DeferredList

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.produce_answer import accepted, answer, refused
from kafkacompat.handlers.produce_verification import NOTHING, TOPIC_ID_VERSION, Verdicts, verify
from kafkacompat.partitions.held_appends import Appended, settle
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.intake.preparation import take_messages_at_once, taken_in
from kafkacompat.storage.intake.validation import TooMuchError, check_batch
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.producers.verification import Guard
from kafkacompat.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkacompat.wire.conversion import is_message_set
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import (
    ATTRIBUTES_POSITION,
    BATCHES_FROM_PRODUCE_VERSION,
    TRANSACTIONAL,
    check_produce_version,
)

VALID_ACKS = (-1, 0, 1)
# The one client that Kafka lets write to internal topics.
ADMIN_CLIENT_ID = "__admin_client"
# A request that has taken so long lets others have their turn before it goes on.
MAX_TURN_SECONDS = 0.01
ProduceResult: TypeAlias = "ProduceResponse | Pending[ProduceResponse | None] | None"


def handle_produce(request: ProduceRequest, context: RequestContext, services: Services) -> ProduceResult:
    """Append every batch; answer when all of them are settled."""
    refusal = _refusal(request)
    if refusal is None and request.transactional_id is not None:
        return _verify_and_produce(request.transactional_id, request, context, services)
    return _produce(request, context, services, refusal, NOTHING)


def _verify_and_produce(
    transactional_id: str, request: ProduceRequest, context: RequestContext, services: Services
) -> ProduceResult:
    try:
        asked = verify(transactional_id, request, context, services)
    except KafkaError as problem:
        return _produce(request, context, services, problem, NOTHING)
    if not isinstance(asked, Deferred):
        return _produce(request, context, services, None, asked)
    # Until the coordinator has told, nothing may overtake.
    settled: Deferred[None] = Deferred()
    told = asked.addCallback(lambda verdicts: _later(_produce(request, context, services, None, verdicts), settled))
    return Pending(told, in_order=True, settled=settled)


def _later(result: ProduceResult, settled: Deferred[None]) -> ProduceResponse | Deferred[ProduceResponse | None] | None:
    if not isinstance(result, Pending):
        return result
    if not result.in_order:
        settled.callback(None)
    return result.response


def _produce(
    request: ProduceRequest,
    context: RequestContext,
    services: Services,
    refusal: KafkaError | None,
    verdicts: Verdicts,
) -> ProduceResult:
    produce = _Produce(request, context, services, refusal, verdicts)
    response = ProduceResponse(responses=[produce.topic(topic) for topic in request.topic_data])
    if not produce.waiting:
        return answer(request, response)
    produce.catch_up()
    settled = produce.waiting[0] if len(produce.waiting) == 1 else DeferredList(produce.waiting)
    answered = settled.addCallback(lambda _: answer(request, response))
    # While something is not in its log the next request of the connection has to wait: the order is not settled.
    return Pending(answered, in_order=produce.is_unsettled)


@dataclass(slots=True)
class _Late:
    """A batch or a message set whose turn is yet to come."""

    partition: Partition
    records: Buffer
    guard: Guard | None
    is_much: bool
    result: Deferred[AppendResult] = field(default_factory=Deferred)


class _Produce:
    """One request on its way.

    ``waiting`` collects the appends that could not be answered at once, ``is_unsettled`` says whether any of them is not
    even in its log: the others are only to be synced.
    """

    def __init__(
        self,
        request: ProduceRequest,
        context: RequestContext,
        services: Services,
        refusal: KafkaError | None,
        verdicts: Verdicts,
    ) -> None:
        self._refusal = refusal
        self._verdicts = verdicts
        self._version = context.api_version
        self._acks = request.acks
        self._is_admin = context.client_id == ADMIN_CLIENT_ID
        self._replicas = services.replica_manager
        self._conversions = services.conversions
        self._clock = services.clock
        self._size_bytes = _size_bytes(request) if self._version < BATCHES_FROM_PRODUCE_VERSION else 0
        self._late: list[_Late] = []
        self.waiting: list[Deferred[None]] = []
        self.is_unsettled = False
        self._begin_turn()

    def topic(self, topic: TopicProduceData) -> TopicProduceResponse:
        key = topic.topic_id if self._version >= TOPIC_ID_VERSION else topic.name
        return TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[self._partition(key, data) for data in topic.partition_data],
        )

    def _partition(self, topic: str | bytes, data: PartitionProduceData) -> PartitionProduceResponse:
        response = PartitionProduceResponse(index=data.index, base_offset=-1)
        partition = None
        try:
            if self._refusal is not None:
                raise self._refusal
            guard = self._guard(topic, data.index)
            partition = self._replicas.find(topic, data.index)
            result = self._append(partition, self._checked(partition, data.records), guard)
        except Exception as problem:
            refused(response, problem, partition)
        else:
            if isinstance(result, Deferred):
                self._wait(response, partition, result)
            elif result is not None:
                accepted(response, result)
        return response

    def _wait(self, response: PartitionProduceResponse, partition: Partition, result: Deferred[AppendResult]) -> None:
        settled = result.addCallbacks(
            lambda appended: accepted(response, appended),
            lambda failure: refused(response, failure.value, partition),
        )
        is_unsettled = bool(self._late) or partition.is_in_line
        self.is_unsettled = self.is_unsettled or is_unsettled
        # Nobody hears of a sync with acks=0; but while the disk hangs, what waits for it would grow without bound.
        if is_unsettled or self._acks or partition.waits_long:
            self.waiting.append(settled)

    def _guard(self, topic: str | bytes, index: int) -> Guard | None:
        verdict = self._verdicts.get((topic, index)) if self._verdicts else None
        if isinstance(verdict, KafkaError):
            raise verdict
        return verdict

    def _append(self, partition: Partition, records: Buffer, guard: Guard | None) -> Appended | None:
        """None where an old producer sent an empty set: that is no error, and nothing to do."""
        if not records:
            return None
        is_much = False
        # Nothing overtakes what is late already.
        if not self._late and self._clock.seconds() < self._turn_ends:
            try:
                return self._append_at_once(partition, records, guard)
            except TooMuchError:
                is_much = True
        late = _Late(partition, records, guard, is_much)
        self._late.append(late)
        return late.result

    def _append_at_once(self, partition: Partition, records: Buffer, guard: Guard | None) -> Appended:
        config = partition.log.state.config
        if self._version < BATCHES_FROM_PRODUCE_VERSION and is_message_set(records):
            batch = take_messages_at_once(records, config, self._now_ms, self._size_bytes)
        else:
            batch = check_batch(records, config, self._now_ms, from_client=True, at_once=True)
        return partition.append(batch, self._now_ms, guard=guard)

    def catch_up(self) -> None:
        """Append what is late; what comes of it is waited for already."""
        if self._late:
            Deferred.fromCoroutine(self._catch_up())

    async def _catch_up(self) -> None:
        """One after the other: each takes its turn among those of other requests."""
        for late in self._late:
            try:
                settle(late.result, await self._append_late(late))
            except Exception as problem:
                late.result.errback(problem)

    async def _append_late(self, late: _Late) -> Appended:
        if not late.is_much:
            if self._clock.seconds() >= self._turn_ends:
                await self._next_turn()
            try:
                return self._append_at_once(self._still(late.partition), late.records, late.guard)
            except TooMuchError:
                pass
        config = late.partition.log.config
        batch = await self._conversions.take_in(late.records, config, self._now_ms)
        self._begin_turn()
        partition = self._still(late.partition)
        return partition.append(taken_in(batch, self._now_ms), self._now_ms, guard=late.guard)

    def _still(self, partition: Partition) -> Partition:
        """The partition, unless it was deleted meanwhile or its log is being closed."""
        self._conversions.check_open()
        found = self._replicas.find(partition.topic, partition.index)
        if found is not partition:
            detail = f"{partition.topic} was deleted, and made again, before the batch had its turn"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, detail)
        return found

    async def _next_turn(self) -> None:
        turn: Deferred[None] = Deferred()
        self._clock.callLater(0, turn.callback, None)
        await turn
        self._begin_turn()

    def _begin_turn(self) -> None:
        seconds = self._clock.seconds()
        self._now_ms = int(seconds * 1000)
        self._turn_ends = seconds + MAX_TURN_SECONDS

    def _checked(self, partition: Partition, records: Buffer | None) -> Buffer:
        if partition.is_internal and not self._is_admin:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is an internal topic")
        return check_produce_version(records, self._version)


def _refusal(request: ProduceRequest) -> KafkaError | None:
    """What is wrong with the request as a whole; every partition is refused with it then."""
    if request.acks not in VALID_ACKS:
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}; use -1, 0 or 1")
    if request.transactional_id is None and _has_transactional_batches(request):
        detail = "a transactional batch needs the request's transactional_id"
        return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, detail)
    return None


def _size_bytes(request: ProduceRequest) -> int:
    return sum(len(data.records or b"") for topic in request.topic_data for data in topic.partition_data)


def _has_transactional_batches(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if records is None or len(records) <= ATTRIBUTES_POSITION:
                continue
            if records[ATTRIBUTES_POSITION] & TRANSACTIONAL and not is_message_set(records):
                return True
    return False
