"""AddPartitionsToTxn (key 24): add partitions to a transaction before it writes to them.

Clients send versions 0 to 3, one transaction at a time; brokers send the later ones (KIP-890).
"""

from __future__ import annotations

from kafkacompat.wire.entities import TOPIC, TRANSACTIONAL_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string


class AddPartitionsToTxnTopic(Struct):
    """The partitions of one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[int] = array(int32())


class AddPartitionsToTxnTransaction(Struct):
    """One transaction and its partitions, from version 4."""

    transactional_id: str = string(entity=TRANSACTIONAL_ID)
    producer_id: int = int64()
    producer_epoch: int = int16()
    verify_only: bool = boolean()  # only checks that the partitions belong to the transaction
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic)


class AddPartitionsToTxnRequest(Request, api_key=24, versions="0-5", flexible="3+"):
    """Add partitions to one transaction (up to version 3) or to several (from 4)."""

    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, versions="4+")
    v3_and_below_transactional_id: str = string(versions="0-3", entity=TRANSACTIONAL_ID)
    v3_and_below_producer_id: int = int64(versions="0-3")
    v3_and_below_producer_epoch: int = int16(versions="0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, versions="0-3")


class AddPartitionsToTxnPartitionResult(Struct):
    """The outcome for one partition."""

    partition_index: int = int32()
    partition_error_code: int = int16()  # an error_code, as in other messages


class AddPartitionsToTxnTopicResult(Struct):
    """The outcomes for one topic."""

    name: str = string(entity=TOPIC)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(AddPartitionsToTxnPartitionResult)


class AddPartitionsToTxnResult(Struct):
    """The outcomes for one transaction, from version 4."""

    transactional_id: str = string(entity=TRANSACTIONAL_ID)
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult)


class AddPartitionsToTxnResponse(Response, api_key=24, versions="0-5", flexible="3+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="4+")
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, versions="4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, versions="0-3"
    )
