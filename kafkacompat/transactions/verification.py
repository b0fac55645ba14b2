"""Asking the coordinator of a transaction, wherever it is, about partitions that begin to take part (KIP-890)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from twisted.internet.defer import Deferred

from kafkacompat.transactions.broker_queue import BrokerQueue, SendRequest
from kafkacompat.transactions.records import group_by_topic
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.transactions.answers import PartitionCodes, PartitionCodesAnswer
    from kafkacompat.transactions.transaction import TopicPartition

log = logging.getLogger(__name__)

PURPOSE = "transaction verification"


class Verifier(Protocol):
    """Verifies partitions; the coordinator does for its own transactions, `TransactionVerifier` for those of any broker."""

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> PartitionCodesAnswer:
        """See TransactionCoordinator.verify."""
        ...


class LocalCoordinator(Verifier, Protocol):
    """This broker's coordinator; `TransactionCoordinator` implements it."""

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of the topic that a transactional id belongs to."""
        ...


@dataclass(slots=True, eq=False)
class _Question:
    """One transaction's partitions; implements `QueueEntry`. ``answer`` fires with the code of each partition."""

    transaction: AddPartitionsToTxnTransaction
    partitions: Collection[TopicPartition]
    answer: Deferred[PartitionCodes] = field(default_factory=Deferred)

    @property
    def key(self) -> str:
        return self.transaction.transactional_id

    @property
    def partition_count(self) -> int:
        return len(self.partitions)


class TransactionVerifier:
    """Asks the broker that leads a transactional id's partition in the image; ``find_local`` returns this broker's coordinator.

    Other brokers are asked by AddPartitionsToTxn, for several transactions in one request. Without a leader every partition has
    the code COORDINATOR_NOT_AVAILABLE, without a response NETWORK_EXCEPTION: producers try again after both.
    """

    def __init__(
        self,
        node_id: int,
        metadata: ImageHolder,
        find_local: Callable[[], LocalCoordinator],
        send: SendRequest,
        request_timeout_ms: int,
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._find_local = find_local
        self._send_request = send
        self._timeout_s = request_timeout_ms / 1000
        self._queues: dict[int, BrokerQueue[_Question]] = {}

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> PartitionCodesAnswer:
        """See Verifier."""
        local = self._find_local()
        image = self._metadata.image.partition(TRANSACTION_TOPIC, local.partition_for(transactional_id))
        if image is None or image.leader == self._node_id:
            return local.verify(transactional_id, producer_id, producer_epoch, partitions, add=add)
        if image.leader < 0:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=not add,
            topics=[
                AddPartitionsToTxnTopic(name=part.topic, partitions=part.partition_ids)
                for part in group_by_topic(partitions)
            ],
        )
        question = _Question(transaction, partitions)
        self._find_queue(image.leader).add(question)
        return question.answer

    def _find_queue(self, node_id: int) -> BrokerQueue[_Question]:
        queue = self._queues.get(node_id)
        if queue is None:
            queue = self._queues[node_id] = BrokerQueue(lambda batch: self._send_batch(node_id, batch))
        return queue

    def _send_batch(self, node_id: int, batch: list[_Question]) -> Deferred[None]:
        return Deferred.fromCoroutine(self._ask(node_id, batch))

    async def _ask(self, node_id: int, batch: list[_Question]) -> None:
        request = AddPartitionsToTxnRequest(transactions=[question.transaction for question in batch])
        codes: dict[str, PartitionCodes] = {}
        try:
            response = await self._send_request(node_id, PURPOSE, request, self._timeout_s)
            missing = _adapt_code(response.error_code) or ErrorCode.UNKNOWN_SERVER_ERROR
            codes = _read_codes(response)
        except Exception as problem:
            log.warning("Broker %d does not answer AddPartitionsToTxn: %s", node_id, problem)
            missing = ErrorCode.NETWORK_EXCEPTION
        for question in batch:
            answered = codes.get(question.key, {})
            question.answer.callback({partition: answered.get(partition, missing) for partition in question.partitions})


_ADAPTED = {
    # Brokers may not send this request there; no client can do anything about it.
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE,
    # Producers know no other code for that here.
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
}


def _adapt_code(code: int) -> ErrorCode:
    """Return the code for the producer. Raises ValueError for an unknown code."""
    return _ADAPTED.get(ErrorCode(code), ErrorCode(code))


def _read_codes(response: AddPartitionsToTxnResponse) -> dict[str, PartitionCodes]:
    """Return the codes of a response by transactional id. Raises ValueError for an unknown code."""
    return {
        result.transactional_id: {
            (topic.name, partition.partition_index): _adapt_code(partition.partition_error_code)
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }
