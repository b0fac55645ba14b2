"""AddPartitionsToTxn (key 24), v0-5: a transaction will write to these partitions.

v2     PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
v3     flexible
v4     sent by brokers, for several transactions: add, or only tell what is in them (KIP-890)
v5     as v4; the broker knows TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.fencing import in_words_of
from kafkacompat.handlers.ordering import in_order
from kafkacompat.metadata.topic_names import is_internal
from kafkacompat.timers import in_turns
from kafkacompat.transactions.answers import PartitionCodes
from kafkacompat.transactions.state import EPOCH_BUMP_VERSION
from kafkacompat.transactions.transaction import Producer, TopicPartition
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
    """Add all partitions of a transaction or, if one of them cannot be, none."""
    if context.api_version < SEVERAL_TRANSACTIONS_VERSION:
        return in_order(_answer_one(_only(request), context.api_version, services))
    return in_order(_answer(request.transactions, context.api_version, services))


async def _answer_one(
    wanted: AddPartitionsToTxnTransaction, version: int, services: Services
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _added(wanted, version, services))


async def _answer(
    transactions: Sequence[AddPartitionsToTxnTransaction], version: int, services: Services
) -> AddPartitionsToTxnResponse:
    in_turn = in_turns(services.clock, transactions)
    adding = [Deferred.fromCoroutine(_added(each, version, services)) async for each in in_turn]
    results = [
        AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=await added)
        for each, added in zip(transactions, adding, strict=True)
    ]
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _only(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


async def _added(
    wanted: AddPartitionsToTxnTransaction, version: int, services: Services
) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    codes = await _add(wanted, version, services)
    async for (topic, partition), code in in_turns(services.clock, codes.items()):
        result = AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
        topics.setdefault(topic, []).append(result)
    return [AddPartitionsToTxnTopicResult(name=name, results_by_partition=each) for name, each in topics.items()]


async def _add(wanted: AddPartitionsToTxnTransaction, version: int, services: Services) -> PartitionCodes:
    partitions = _partitions(wanted.topics)
    judged = in_turns(services.clock, partitions)
    refused = {each: code async for each in judged if (code := _objection(each, version, services))}
    if refused:
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
    producer = Producer(wanted.producer_id, wanted.producer_epoch)
    name = wanted.transactional_id
    if wanted.verify_only:
        codes = services.coordinators.transactions.verify(name, *producer, partitions, add=False)
        return await codes if isinstance(codes, Deferred) else codes
    client_version = EPOCH_BUMP_VERSION if version >= SEVERAL_TRANSACTIONS_VERSION else 0
    added = services.coordinators.transactions.add_partitions(name, producer, partitions, client_version)
    code = await added if isinstance(added, Deferred) else added
    return dict.fromkeys(partitions, in_words_of(code, version, PRODUCER_FENCED_VERSION))


def _partitions(topics: Sequence[AddPartitionsToTxnTopic]) -> dict[TopicPartition, None]:
    """Each partition once, in the order of the request."""
    return {(topic.name, partition): None for topic in topics for partition in topic.partitions}


def _objection(partition: TopicPartition, version: int, services: Services) -> ErrorCode:
    if version < SEVERAL_TRANSACTIONS_VERSION and is_internal(partition[0]):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED  # A client names a group instead.
    is_there = services.metadata.image.partition(*partition) is not None
    return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
