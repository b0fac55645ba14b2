"""AddPartitionsToTxn (key 24), v0-5: a transaction will write to these partitions.

v2     PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
v3     flexible
v4     sent by brokers, for several transactions: add partitions, or only verify them (KIP-890)
v5     as v4; the broker knows TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.fencing import as_fencing_code
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.topic_names import is_internal
from kafkacompat.timers import yield_in_turns
from kafkacompat.transactions.answers import PartitionCodes
from kafkacompat.transactions.state import EPOCH_BUMP_VERSION
from kafkacompat.transactions.transaction import ProducerIdentity, TopicPartition
from kafkacompat.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kafkacompat.wire.errors import ErrorCode

PRODUCER_FENCED_VERSION = 2
SEVERAL_TRANSACTIONS_VERSION = 4


def handle_add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: RequestContext, services: Services
) -> Pending[AddPartitionsToTxnResponse]:
    """Add all partitions of a transaction, or none if one of them is refused."""
    if context.api_version < SEVERAL_TRANSACTIONS_VERSION:
        return answer_in_order(_answer_single(_as_transaction(request), context.api_version, services))
    return answer_in_order(_answer_several(request.transactions, context.api_version, services))


async def _answer_single(
    wanted: AddPartitionsToTxnTransaction, version: int, services: Services
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _add_and_report(wanted, version, services))


async def _answer_several(
    transactions: Sequence[AddPartitionsToTxnTransaction], version: int, services: Services
) -> AddPartitionsToTxnResponse:
    in_turn = yield_in_turns(services.clock, transactions)
    adding = [Deferred.fromCoroutine(_add_and_report(transaction, version, services)) async for transaction in in_turn]
    results = [
        AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=await added)
        for transaction, added in zip(transactions, adding, strict=True)
    ]
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _as_transaction(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


async def _add_and_report(
    wanted: AddPartitionsToTxnTransaction, version: int, services: Services
) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    codes = await _add_partitions(wanted, version, services)
    async for (topic, partition), code in yield_in_turns(services.clock, codes.items()):
        result = AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
        topics.setdefault(topic, []).append(result)
    return [AddPartitionsToTxnTopicResult(name=name, results_by_partition=results) for name, results in topics.items()]


async def _add_partitions(wanted: AddPartitionsToTxnTransaction, version: int, services: Services) -> PartitionCodes:
    partitions: dict[TopicPartition, None] = {}
    refused: PartitionCodes = {}
    async for partition in yield_in_turns(services.clock, _list_partitions(wanted.topics)):
        partitions[partition] = None
        if code := _check_partition(partition, version, services):
            refused[partition] = code
    if refused:
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
    producer = ProducerIdentity(wanted.producer_id, wanted.producer_epoch)
    name = wanted.transactional_id
    if wanted.verify_only:
        codes = services.coordinators.transactions.verify(name, *producer, partitions, add=False)
        return await codes if isinstance(codes, Deferred) else codes
    client_version = EPOCH_BUMP_VERSION if version >= SEVERAL_TRANSACTIONS_VERSION else 0
    added = services.coordinators.transactions.add_partitions(name, producer, partitions, client_version)
    code = await added if isinstance(added, Deferred) else added
    return dict.fromkeys(partitions, as_fencing_code(code, version, PRODUCER_FENCED_VERSION))


def _list_partitions(topics: Sequence[AddPartitionsToTxnTopic]) -> Iterator[TopicPartition]:
    return ((topic.name, partition) for topic in topics for partition in topic.partitions)


def _check_partition(partition: TopicPartition, version: int, services: Services) -> ErrorCode:
    if version < SEVERAL_TRANSACTIONS_VERSION and is_internal(partition[0]):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED  # A client names a group instead.
    is_there = services.metadata.image.partition(*partition) is not None
    return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
