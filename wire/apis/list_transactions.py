"""ListTransactions (key 66): the transactions of a coordinator (KIP-664)."""

from __future__ import annotations

from kafkacompat.wire.entities import TRANSACTIONAL_ID, TRANSACTIONAL_ID_PATTERN
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Request, api_key=66, versions="0-2", flexible="0+"):
    """List the transactions that match all filters."""

    state_filters: list[str] = array(string())  # states, as in DescribeTransactions; empty: any
    producer_id_filters: list[int] = array(int64())  # empty: any
    # selects transactions that have been open for longer, in ms; negative: any
    duration_filter: int = int64(versions="1+", default=-1)
    # a regular expression for the whole id (KIP-1152); null or empty: any
    transactional_id_pattern: str | None = string(
        versions="2+", nullable="0+", default=None, entity=TRANSACTIONAL_ID_PATTERN
    )


class TransactionState(Struct):
    """One transaction."""

    transactional_id: str = string(entity=TRANSACTIONAL_ID)
    producer_id: int = int64()
    transaction_state: str = string()  # a state, as in DescribeTransactions


class ListTransactionsResponse(Response, api_key=66, versions="0-2", flexible="0+"):
    """The matching transactions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string())  # the names in state_filters that are no known states
    transaction_states: list[TransactionState] = array(TransactionState)
