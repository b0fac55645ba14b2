"""ListTransactions (key 66): the transactions that a coordinator looks after (KIP-664)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Request, api_key=66, versions="0-2", flexible="0+"):
    """List those to which every filter applies."""

    state_filters: list[str] = array(string())  # as in DescribeTransactions; empty: any
    producer_id_filters: list[int] = array(int64())  # empty: any
    duration_filter: int = int64(versions="1+", default=-1)  # open for longer than this, in ms; below 0: any
    # a regular expression for the whole id (KIP-1152); null or empty: any
    transactional_id_pattern: str | None = string(versions="2+", nullable="0+", default=None)


class TransactionState(Struct):
    """One transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()  # as in DescribeTransactions


class ListTransactionsResponse(Response, api_key=66, versions="0-2", flexible="0+"):
    """What was found."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string())  # names in the filter that are no states
    transaction_states: list[TransactionState] = array(TransactionState)
