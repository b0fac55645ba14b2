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

from typing import TypeAlias

from twisted.internet.defer import Deferred, DeferredList

from kafkacompat.conversion import is_quick
from kafkacompat.handlers.context import Pending, RequestContext, Services, UnanswerableError
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.replication.held_appends import Appended
from kafkacompat.replication.partition import Partition
from kafkacompat.storage.log import AppendResult
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.apis.produce import (
    BatchIndexAndErrorMessage,
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
from kafkacompat.wire.record_batch import TRANSACTIONAL, InvalidRecordsError, check_produce_version

VALID_ACKS = (-1, 0, 1)
BATCHES_VERSION = 3
"""Before it records are message sets."""
TOPIC_ID_VERSION = 13
# The one client that Kafka lets write to internal topics.
ADMIN_CLIENT_ID = "__admin_client"
# Where a batch has the low byte of its attributes.
ATTRIBUTES_POSITION = 22
# With these codes Kafka does not say where the log begins.
NOT_JUDGED_BY_THE_LOG = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
)

ProduceResult: TypeAlias = "ProduceResponse | Pending[ProduceResponse | None] | None"


def handle_produce(request: ProduceRequest, context: RequestContext, services: Services) -> ProduceResult:
    """Append every batch; answer when all of them are settled."""
    produce = _Produce(request, context, services)
    response = ProduceResponse(responses=[produce.topic(topic) for topic in request.topic_data])
    if not produce.waiting:
        return _answer(request, response)
    Deferred.fromCoroutine(produce.convert())
    answered = DeferredList(produce.waiting).addCallback(lambda _: _answer(request, response))
    # While something is not in its log the next request of the connection has to wait: the order is not settled.
    return Pending(answered, in_order=produce.is_unsettled)


def _answer(request: ProduceRequest, response: ProduceResponse) -> ProduceResponse | None:
    if request.acks != 0:
        return response
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                code = ErrorCode(partition.error_code).name
                raise UnanswerableError(f"a Produce with acks=0 to {topic.name}-{partition.index} failed with {code}")
    return None


class _Produce:
    """One request on its way.

    ``waiting`` collects the appends that could not be answered at once, ``is_unsettled`` says whether any of them is not
    even in its log: the others are only to be synced.
    """

    def __init__(self, request: ProduceRequest, context: RequestContext, services: Services) -> None:
        self._refusal = _refusal(request)
        self._version = context.api_version
        self._acks = request.acks
        self._is_admin = context.client_id == ADMIN_CLIENT_ID
        self._replicas = services.replica_manager
        self._conversions = services.conversions
        self._clock_ms = services.now_ms
        self._now_ms = services.now_ms()
        self._size_bytes = _size_bytes(request) if self._version < BATCHES_VERSION else 0
        self._unconverted: list[tuple[Buffer, LogConfig, Deferred[bytes]]] = []
        self.waiting: list[Deferred[None]] = []
        self.is_unsettled = False

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
            self._check_request()
            partition = self._replicas.find(topic, data.index)
            result = self._append(partition, self._checked(partition, data.records))
        except Exception as problem:
            _refused(response, problem, partition)
        else:
            if isinstance(result, Deferred):
                self._wait(response, partition, result)
            elif result is not None:
                _accepted(response, result)
        return response

    def _wait(self, response: PartitionProduceResponse, partition: Partition, result: Deferred[AppendResult]) -> None:
        settled = result.addCallbacks(
            lambda appended: _accepted(response, appended),
            lambda failure: _refused(response, failure.value, partition),
        )
        is_unsettled = bool(self._unconverted) or partition.is_in_line
        self.is_unsettled = self.is_unsettled or is_unsettled
        # Nobody hears of a sync with acks=0.
        if is_unsettled or self._acks:
            self.waiting.append(settled)

    def _append(self, partition: Partition, records: Buffer) -> Appended | None:
        """None where an old producer sent an empty set: that is no error, and nothing to do."""
        if self._version >= BATCHES_VERSION or not is_message_set(records):
            return partition.append(records, self._now_ms)
        if not records:
            return None
        config = partition.log.config
        if is_quick(records, self._size_bytes):
            return partition.append(self._conversions.up_at_once(records, config), self._now_ms)

        def append_now(converted: bytes) -> Appended:
            # It may have been deleted meanwhile.
            return self._replicas.find(partition.topic, partition.index).append(converted, self._clock_ms())

        batch: Deferred[bytes] = Deferred()
        self._unconverted.append((records, config, batch))
        return batch.addCallback(append_now)

    async def convert(self) -> None:
        """Convert what takes a while, one set after the other: each takes its turn among those of other requests."""
        for records, config, batch in self._unconverted:
            try:
                converted = await self._conversions.up(records, config)
            except Exception as problem:
                batch.errback(problem)
            else:
                batch.callback(converted)

    def _check_request(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def _checked(self, partition: Partition, records: Buffer | None) -> Buffer:
        if partition.is_internal and not self._is_admin:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is an internal topic")
        return check_produce_version(records, self._version)


def _refusal(request: ProduceRequest) -> KafkaError | None:
    """What is wrong with the request as a whole; every partition is refused with it then."""
    if request.acks not in VALID_ACKS:
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}; use -1, 0 or 1")
    if request.transactional_id is None and any(
        _is_transactional(data.records) for topic in request.topic_data for data in topic.partition_data
    ):
        detail = "a transactional batch needs the request's transactional_id"
        return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, detail)
    return None


def _size_bytes(request: ProduceRequest) -> int:
    return sum(len(data.records or b"") for topic in request.topic_data for data in topic.partition_data)


def _is_transactional(records: Buffer | None) -> bool:
    return (
        records is not None
        and len(records) > ATTRIBUTES_POSITION
        and not is_message_set(records)
        and bool(records[ATTRIBUTES_POSITION] & TRANSACTIONAL)
    )


def _accepted(response: PartitionProduceResponse, result: AppendResult) -> None:
    response.base_offset = result.base_offset
    response.log_append_time_ms = result.log_append_time_ms
    response.log_start_offset = result.log_start_offset


def _refused(response: PartitionProduceResponse, problem: BaseException, partition: Partition | None) -> None:
    response.error_code = error_code_of(problem)
    if partition is not None and response.error_code not in NOT_JUDGED_BY_THE_LOG:
        response.log_start_offset = partition.log.log_start_offset
    if isinstance(problem, KafkaError) and problem.detail:
        response.error_message = problem.detail
    if isinstance(problem, InvalidRecordsError):
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in problem.record_errors
        ]
