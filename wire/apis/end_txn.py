"""EndTxn (key 26): commit or abort a transaction.

From version 5 every transaction has an epoch of its own, and the answer names the next one (KIP-890).
"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, boolean, int16, int32, int64, string


class EndTxnRequest(Request, api_key=26, versions="0-5", flexible="3+"):
    """End the transaction of this producer."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()  # else aborted


class EndTxnResponse(Response, api_key=26, versions="0-5", flexible="3+"):
    """Whether it ended, and what the next one is written with."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(versions="5+", default=-1)  # -1: go on with the one held
    producer_epoch: int = int16(versions="5+", default=-1)  # -1: go on with the one held
