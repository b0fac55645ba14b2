"""DescribeTransactions (key 65): the state of transactions, by transactional id (KIP-664)."""

from __future__ import annotations

from kafkacompat.wire.entities import TOPIC, TRANSACTIONAL_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class DescribeTransactionsRequest(Request, api_key=65, versions="0", flexible="0+"):
    """Describe the given transactions."""

    transactional_ids: list[str] = array(string(entity=TRANSACTIONAL_ID))


class TopicData(Struct):
    """The partitions of one topic that a transaction has written to."""

    topic: str = string(entity=TOPIC)
    partitions: list[int] = array(int32())


class TransactionState(Struct):
    """One transaction."""

    error_code: int = int16()
    transactional_id: str = string(entity=TRANSACTIONAL_ID)
    # Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, PrepareEpochFence or Dead
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()  # the coordinator aborts a transaction that stays open longer
    transaction_start_time_ms: int = int64()  # in ms since 1970; -1 if no transaction is open
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData)  # empty unless the transaction is open


class DescribeTransactionsResponse(Response, api_key=65, versions="0", flexible="0+"):
    """The descriptions of the transactions."""

    throttle_time_ms: int = int32()
    transaction_states: list[TransactionState] = array(TransactionState)
