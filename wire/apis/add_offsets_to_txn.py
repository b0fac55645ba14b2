"""AddOffsetsToTxn (key 25): a transaction will commit offsets of a group."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, api_key=25, versions="0-4", flexible="3+"):
    """Add the partition that holds the offsets of this group to the transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Response, api_key=25, versions="0-4", flexible="3+"):
    """Whether it is part of the transaction."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
