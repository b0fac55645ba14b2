"""AddOffsetsToTxn (key 25): add the offsets of a group to a transaction."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TRANSACTIONAL_ID
from kafkacompat.wire.schema import Request, Response, int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, api_key=25, versions="0-4", flexible="3+"):
    """Add the __consumer_offsets partition of the group to the transaction."""

    transactional_id: str = string(entity=TRANSACTIONAL_ID)
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string(entity=GROUP)


class AddOffsetsToTxnResponse(Response, api_key=25, versions="0-4", flexible="3+"):
    """The outcome of adding the partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
