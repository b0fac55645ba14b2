"""EndTxn (key 26): commit or abort a transaction.

From version 5 each transaction has its own producer epoch, and the response returns the next one (KIP-890).
"""

from __future__ import annotations

from kafkacompat.wire.entities import TRANSACTIONAL_ID
from kafkacompat.wire.schema import Request, Response, boolean, int16, int32, int64, string


class EndTxnRequest(Request, api_key=26, versions="0-5", flexible="3+"):
    """End the transaction of this producer."""

    transactional_id: str = string(entity=TRANSACTIONAL_ID)
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()  # true: commit, false: abort


class EndTxnResponse(Response, api_key=26, versions="0-5", flexible="3+"):
    """The outcome, and the producer id and epoch of the next transaction."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(versions="5+", default=-1)  # -1: the producer keeps its current value
    producer_epoch: int = int16(versions="5+", default=-1)  # -1: the producer keeps its current value
