"""Asking the coordinator of a transaction before its first batch in a partition (KIP-890).

Without that, a delayed batch would begin a transaction that no producer ends. Up to Produce v11 the client adds the
partition to the transaction first; from v12 on the verification adds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.producing import transactional_header
from kafkacompat.storage.producers.verification import NOT_VERIFIED, Guard
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import BatchHeader

ABORTABLE_VERSION = 11
ADDING_VERSION = 12
TOPIC_ID_VERSION = 13
VERIFICATION = "transaction.partition.verification.enable"

TRANSIENT_ERRORS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors that producers do not expect here; they become NOT_ENOUGH_REPLICAS, after which producers try again."""

Verdicts: TypeAlias = "Mapping[tuple[str | bytes, int], Guard | KafkaError]"
"""By (topic as in the request, partition index): the guard of a transactional batch, or its error.

A batch whose transaction is open already has no entry."""

NO_VERDICTS: Verdicts = {}


def verify_transactions(
    transactional_id: str, request: ProduceRequest, context: RequestContext, services: Services
) -> Verdicts | Deferred[Verdicts]:
    """Ask the coordinator about all batches that would begin a transaction in their partitions.

    Raises KafkaError INVALID_PRODUCER_ID_MAPPING for batches of several producers.
    """
    verification = _TransactionVerification(transactional_id, context.api_version, services)
    for topic in request.topic_data:
        key = topic.topic_id if context.api_version >= TOPIC_ID_VERSION else topic.name
        for data in topic.partition_data:
            verification.add(key, data)
    return verification.ask()


class _TransactionVerification:
    """The verification of one request: its producer, and its batches that would begin a transaction."""

    def __init__(self, transactional_id: str, version: int, services: Services) -> None:
        self._transactional_id = transactional_id
        self._version = version
        self._services = services
        self._producer: tuple[int, int] | None = None
        self._verdicts: dict[tuple[str | bytes, int], Guard | KafkaError] = {}
        self._asked: dict[tuple[str, int], tuple[str | bytes, int]] = {}

    def add(self, topic: str | bytes, data: PartitionProduceData) -> None:
        """Add the batch if it would begin a transaction. Raises KafkaError INVALID_PRODUCER_ID_MAPPING."""
        header = transactional_header(data.records)
        if header is None:
            return
        producer = header.producer_id, header.producer_epoch
        if self._producer not in (None, producer):
            detail = "a request has transactional batches of one producer only"
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, detail)
        self._producer = producer
        try:
            partition = self._services.replica_manager.find(topic, data.index)
        except KafkaError:
            return  # the append rejects the batch with the same error
        self._guard((topic, data.index), partition, header)

    def _guard(self, key: tuple[str | bytes, int], partition: Partition, header: BatchHeader) -> None:
        is_adding = self._version >= ADDING_VERSION
        try:
            guard = partition.guard(
                header.producer_id, header.producer_epoch, header.base_sequence, begins_at_zero=is_adding
            )
        except KafkaError as problem:
            self._verdicts[key] = problem
            return
        if guard is not None:
            self._verdicts[key] = guard
            self._asked[partition.topic, partition.index] = key

    def ask(self) -> Verdicts | Deferred[Verdicts]:
        """Ask the coordinator about the added batches, and return the verdicts."""
        if not self._asked or self._producer is None:
            return self._verdicts
        is_adding = self._version >= ADDING_VERSION
        if not is_adding and not self._services.effective.config.bool(VERIFICATION):
            return {**self._verdicts, **dict.fromkeys(self._asked.values(), NOT_VERIFIED)}
        verifier = self._services.coordinators.verifier
        codes = verifier.verify(self._transactional_id, *self._producer, list(self._asked), add=is_adding)
        return codes.addCallback(self._record_verdicts) if isinstance(codes, Deferred) else self._record_verdicts(codes)

    def _record_verdicts(self, codes: Mapping[tuple[str, int], ErrorCode]) -> Verdicts:
        for where, key in self._asked.items():
            if codes[where]:
                self._verdicts[key] = _adapt_to_version(codes[where], self._version)
        return self._verdicts


def _adapt_to_version(code: ErrorCode, version: int) -> KafkaError:
    """Return the coordinator's error with a code that a producer of this version knows."""
    known_code = code
    if code in TRANSIENT_ERRORS or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDING_VERSION):
        known_code = ErrorCode.NOT_ENOUGH_REPLICAS
    elif code is ErrorCode.PRODUCER_FENCED:
        known_code = ErrorCode.INVALID_PRODUCER_EPOCH
    elif code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_VERSION:
        known_code = ErrorCode.INVALID_TXN_STATE
    return KafkaError(known_code, f"the partition is not known to be part of the transaction: {code.name}")
