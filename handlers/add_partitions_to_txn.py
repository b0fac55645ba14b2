"""AddPartitionsToTxn (key 24), v0-5: a transaction will write to these partitions.

v2     PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
v3     flexible
v4     sent by brokers, for several transactions: add, or only tell what is in them (KIP-890)
v5     as v4; the broker knows TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.fencing import in_words_of
from kafkacompat.handlers.waiting import respond
from kafkacompat.metadata.topic_names import is_internal
from kafkacompat.transactions.answers import PartitionCodes, PartitionCodesOrLater
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
) -> AddPartitionsToTxnResponse | Pending[AddPartitionsToTxnResponse]:
    """Add all partitions of a transaction or, if one of them cannot be, none."""
    version = context.api_version
    if version < SEVERAL_TRANSACTIONS_VERSION:
        added = _add(_only(request), version, services)
        return respond([added], lambda codes: _old_response(codes[0]), in_order=True)
    names = [each.transactional_id for each in request.transactions]
    parts = [_add(each, version, services) for each in request.transactions]
    return respond(parts, lambda codes: _response(names, codes), in_order=True)


def _only(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _add(wanted: AddPartitionsToTxnTransaction, version: int, services: Services) -> PartitionCodesOrLater:
    partitions = _partitions(wanted.topics)
    refused = {each: code for each in partitions if (code := _objection(each, version, services))}
    if refused:
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
    producer = Producer(wanted.producer_id, wanted.producer_epoch)
    name = wanted.transactional_id
    if wanted.verify_only:
        return services.transactions.verify(name, *producer, partitions, add=False)
    client_version = EPOCH_BUMP_VERSION if version >= SEVERAL_TRANSACTIONS_VERSION else 0
    added = services.transactions.add_partitions(name, producer, partitions, client_version)
    if isinstance(added, Deferred):
        return added.addCallback(lambda code: _for_all(partitions, code, version))
    return _for_all(partitions, added, version)


def _partitions(topics: Sequence[AddPartitionsToTxnTopic]) -> dict[TopicPartition, None]:
    """Each partition once, in the order of the request."""
    return {(topic.name, partition): None for topic in topics for partition in topic.partitions}


def _objection(partition: TopicPartition, version: int, services: Services) -> ErrorCode:
    if version < SEVERAL_TRANSACTIONS_VERSION and is_internal(partition[0]):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED  # A client names a group instead.
    is_there = services.metadata.image.partition(*partition) is not None
    return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _for_all(partitions: Mapping[TopicPartition, None], code: ErrorCode, version: int) -> PartitionCodes:
    return dict.fromkeys(partitions, in_words_of(code, version, PRODUCER_FENCED_VERSION))


def _old_response(codes: PartitionCodes) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topics(codes))


def _response(names: Sequence[str], codes: Sequence[PartitionCodes]) -> AddPartitionsToTxnResponse:
    results = [
        AddPartitionsToTxnResult(transactional_id=name, topic_results=_topics(each))
        for name, each in zip(names, codes, strict=True)
    ]
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _topics(codes: PartitionCodes) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, partition), code in codes.items():
        result = AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
        topics.setdefault(topic, []).append(result)
    return [AddPartitionsToTxnTopicResult(name=name, results_by_partition=each) for name, each in topics.items()]
