"""Produce (key 0), v0-13: append one record batch a partition.

v0-2   a message set of format 0 or 1, which is converted to a batch; v1 adds the throttle time, v2 the log append time.
       As in Kafka up to 3.9 a batch of any codec is accepted too: some clients send one in spite of the version
v3-8   fixed-width encoding; v5 adds log_start_offset, v8 the rejected records and an error message
v9     flexible
v10    an error NOT_LEADER_OR_FOLLOWER names the new leader (KIP-951)
v12    a transaction's partitions need not be added first (KIP-890)
v13    topics by id (KIP-516)

acks=0 has no response: an error closes the connection, so that the client refreshes its metadata. acks=1 answers when
the batch is in the leader's log, acks=-1 when the whole in-sync set has it; with one replica both mean the same. While
an answer waits for replicas, the connection's next requests are served.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.leader_hints import LeaderHints
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.handlers.produce_answer import build_response, fill_accepted, fill_refused, name_leaders
from kafkacompat.handlers.produce_verification import NO_VERDICTS, TOPIC_ID_VERSION, Verdicts, verify_transactions
from kafkacompat.handlers.replica_acks import ReplicaAcks
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.producing import RequestAppends, any_is_transactional
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.producers.verification import Guard
from kafkacompat.tenancy.capacity import HeldBackError
from kafkacompat.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import BATCHES_FROM_PRODUCE_VERSION, check_produce_version

LEADER_HINT_VERSION = 10
VALID_ACKS = (-1, 0, 1)
ADMIN_CLIENT_ID = "__admin_client"
"""The one client id whose records Kafka accepts in internal topics."""
HELD_BACK_S = 0.5
"""How long the answer waits for a batch that an instance has no room for: clients send it again after 0.1 s or less."""
ProduceResult: TypeAlias = "ProduceResponse | Pending[ProduceResponse | None] | None"


def handle_produce(request: ProduceRequest, context: RequestContext, services: Services) -> ProduceResult:
    """Append every batch; respond when each of them is appended or rejected."""
    refusal = _find_request_error(request)
    if refusal is None and request.transactional_id is not None:
        return _verify_and_produce(request.transactional_id, request, context, services)
    return _produce_batches(request, context, services, refusal, NO_VERDICTS)


def _verify_and_produce(
    transactional_id: str, request: ProduceRequest, context: RequestContext, services: Services
) -> ProduceResult:
    try:
        verdicts = verify_transactions(transactional_id, request, context, services)
    except KafkaError as problem:
        return _produce_batches(request, context, services, problem, NO_VERDICTS)
    if not isinstance(verdicts, Deferred):
        return _produce_batches(request, context, services, None, verdicts)
    # The connection's next request must not overtake this one while the coordinator is asked.
    settled: Deferred[None] = Deferred()
    response = verdicts.addCallback(
        lambda known: _answer_later(_produce_batches(request, context, services, None, known), settled)
    )
    return Pending(response, in_order=True, settled=settled)


def _answer_later(
    result: ProduceResult, settled: Deferred[None]
) -> ProduceResponse | Deferred[ProduceResponse | None] | None:
    if not isinstance(result, Pending):
        return result
    if not result.in_order:
        settled.callback(None)
    elif result.settled is not None:
        result.settled.chainDeferred(settled)
    return result.response


def _produce_batches(
    request: ProduceRequest,
    context: RequestContext,
    services: Services,
    refusal: KafkaError | None,
    verdicts: Verdicts,
) -> ProduceResult:
    produce = _ProduceRequestState(request, context, services, refusal, verdicts)
    response = ProduceResponse(responses=[produce.answer_topic(topic) for topic in request.topic_data])
    if not produce.waiting:
        if produce.is_held_back:
            return Pending(produce.finish_later(response))
        if produce.replica_acks is None:
            return produce.finish(response)
        return Pending(produce.replica_acks.wait().addCallback(lambda _: produce.finish(response)))
    produce.appends.append_late()
    # While a batch is not in its log yet, the connection's next request has to wait: the order is not settled.
    settled: Deferred[None] = Deferred()
    appended = produce.waiting[0] if len(produce.waiting) == 1 else DeferredList(produce.waiting)
    answered = appended.addCallback(lambda _: produce.wait_for_replicas(settled)).addCallback(
        lambda _: produce.finish_later(response) if produce.is_held_back else produce.finish(response)
    )
    return Pending(answered, in_order=produce.is_unsettled, settled=settled)


class _ProduceRequestState:
    """One request while its response is built.

    ``waiting`` are the appends that could not be answered at once. ``is_unsettled`` says whether any of them is not in
    its log yet; the others only wait for a sync. ``replica_acks`` are the appends that wait for replicas, None without
    any. ``is_held_back`` says that an instance has no room for a batch, and that its producer is to try again, but not at once.
    """

    def __init__(
        self,
        request: ProduceRequest,
        context: RequestContext,
        services: Services,
        refusal: KafkaError | None,
        verdicts: Verdicts,
    ) -> None:
        self._request = request
        self._context = context
        self._services = services
        self._refusal = refusal
        self._verdicts = verdicts
        self._version = context.api_version
        self._acks = request.acks
        self._has_lost_leader = False
        self._is_admin = context.client_id == ADMIN_CLIENT_ID
        self._find = find = services.replica_manager.find
        message_set_bytes = sum(map(len, _list_batches(request))) if self._version < BATCHES_FROM_PRODUCE_VERSION else 0
        self.appends = RequestAppends(find, services.conversions, services.clock, message_set_bytes)
        self.waiting: list[Deferred[None]] = []
        self.replica_acks: ReplicaAcks | None = None
        self.is_unsettled = False
        self.is_held_back = False

    def answer_topic(self, topic: TopicProduceData) -> TopicProduceResponse:
        key = topic.topic_id if self._version >= TOPIC_ID_VERSION else topic.name
        if self._services.requests is not None and topic.partition_data:
            self._count_request(key, topic.partition_data[0].index)
        return TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[self._answer_partition(key, data) for data in topic.partition_data],
        )

    def _count_request(self, topic: str | bytes, index: int) -> None:
        """Count the request with one of its partitions, for the sum over those of the topic."""
        try:
            partition = self._find(topic, index)
        except KafkaError:
            return
        partition.traffic.produces += 1

    def _answer_partition(self, topic: str | bytes, data: PartitionProduceData) -> PartitionProduceResponse:
        response = PartitionProduceResponse(index=data.index, base_offset=-1)
        partition = None
        try:
            if self._refusal is not None:
                raise self._refusal
            guard = self._find_guard(topic, data.index) if self._verdicts else None
            partition = self._find(topic, data.index)
            records = self._check_records(partition, data.records)
            if partition.state.is_replicated and self._acks < 0:
                partition.check_enough_in_sync()
            # An empty set, which old producers send, is no error: there is nothing to append.
            result = self.appends.append(partition, records, guard) if records else None
        except Exception as problem:
            self._refuse(response, problem, partition)
        else:
            if isinstance(result, Deferred):
                self._wait(response, partition, result)
            elif result is not None:
                fill_accepted(response, result)
                if self._acks < 0 and partition.state.is_replicated:
                    self._await_replicas(response, partition, result)
        return response

    def _wait(self, response: PartitionProduceResponse, partition: Partition, result: Deferred[AppendResult]) -> None:
        settled = result.addCallbacks(
            lambda appended: self._accept(response, partition, appended),
            lambda failure: self._refuse(response, failure.value, partition),
        )
        is_unsettled = self.appends.has_late or partition.holds_appends
        self.is_unsettled = self.is_unsettled or is_unsettled
        # With acks=0 no response waits for a sync. While the disk hangs the request waits nevertheless, to bound the
        # unsynced appends.
        if is_unsettled or self._acks or partition.waits_long:
            self.waiting.append(settled)

    def _accept(self, response: PartitionProduceResponse, partition: Partition, result: AppendResult) -> None:
        fill_accepted(response, result)
        if self._acks < 0 and partition.state.is_replicated:
            self._await_replicas(response, partition, result)

    def _refuse(self, response: PartitionProduceResponse, problem: BaseException, partition: Partition | None) -> None:
        fill_refused(response, problem, partition)
        if self._services.requests is not None:
            self._services.requests.note_produce_error(response.error_code)
            if partition is not None:
                partition.traffic.refused_appends += 1
        if response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._has_lost_leader = True
        elif isinstance(problem, HeldBackError) and problem.is_retriable and self._acks:
            self.is_held_back = True

    def _await_replicas(self, response: PartitionProduceResponse, partition: Partition, result: AppendResult) -> None:
        """Let the response wait until the in-sync replicas have the batch. A failure keeps the batch's offsets."""
        replicated = partition.wait_for_replicas(result.last_offset + 1)
        if replicated is None:
            return

        def fail(failure: Failure) -> None:
            assert failure.value is not None
            response.error_code = error_code_of(failure.value)
            if self._services.requests is not None:
                self._services.requests.note_produce_error(response.error_code)
            if response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self._has_lost_leader = True

        replicated.addErrback(fail)
        if self.replica_acks is None:
            self.replica_acks = ReplicaAcks(self._services.clock, self._request.timeout_ms)
        self.replica_acks.add(replicated)

    def wait_for_replicas(self, settled: Deferred[None]) -> Deferred[object] | None:
        """Wait, once all batches are in their logs or refused, for the replicas; the connection goes on meanwhile."""
        if self.replica_acks is not None or self.is_held_back:
            settled.callback(None)
        return None if self.replica_acks is None else self.replica_acks.wait()

    async def _wait_and_finish(self, response: ProduceResponse) -> ProduceResponse | None:
        await deferLater(self._services.clock, HELD_BACK_S)  # type: ignore[arg-type]
        if self.replica_acks is not None:
            await self.replica_acks.wait()
        return self.finish(response)

    def finish_later(self, response: ProduceResponse) -> Deferred[ProduceResponse | None]:
        """Return the complete response after a while; the connection's next requests are handled meanwhile."""
        return Deferred.fromCoroutine(self._wait_and_finish(response))

    def finish(self, response: ProduceResponse) -> ProduceResponse | None:
        """Return the complete response; None with acks=0."""
        if self._has_lost_leader and self._version >= LEADER_HINT_VERSION:
            name_leaders(response, LeaderHints(self._context, self._services))
        return build_response(self._request, response)

    def _find_guard(self, topic: str | bytes, index: int) -> Guard | None:
        verdict = self._verdicts.get((topic, index))
        if isinstance(verdict, KafkaError):
            raise verdict
        return verdict

    def _check_records(self, partition: Partition, records: Buffer | None) -> Buffer:
        if partition.is_internal and not self._is_admin:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is an internal topic")
        return check_produce_version(records, self._version)


def _find_request_error(request: ProduceRequest) -> KafkaError | None:
    """Return the error of the request as a whole, with which every partition is rejected; None if there is none."""
    if request.acks not in VALID_ACKS:
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}; use -1, 0 or 1")
    if request.transactional_id is None and any_is_transactional(_list_batches(request)):
        detail = "a transactional batch needs the request's transactional_id"
        return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, detail)
    return None


def _list_batches(request: ProduceRequest) -> Iterator[Buffer]:
    return (data.records or b"" for topic in request.topic_data for data in topic.partition_data)
