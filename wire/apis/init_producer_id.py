"""InitProducerId (key 22): request a producer id and epoch for idempotent or transactional writes."""

from __future__ import annotations

from kafkacompat.wire.entities import TRANSACTIONAL_ID
from kafkacompat.wire.schema import Request, Response, boolean, int16, int32, int64, string


class InitProducerIdRequest(Request, api_key=22, versions="0-6", flexible="2+"):
    """Request a producer id, or a new epoch for the producer's current id."""

    transactional_id: str | None = string(
        nullable="0+", entity=TRANSACTIONAL_ID
    )  # null: an idempotent producer without transactions
    transaction_timeout_ms: int = int32()  # the coordinator aborts a transaction that stays open longer
    producer_id: int = int64(versions="3+", default=-1)  # -1 if there is none yet
    producer_epoch: int = int16(versions="3+", default=-1)  # -1 if there is none yet
    # enables two-phase commit: the client ends transactions without a timeout (KIP-939)
    enable2_pc: bool = boolean(versions="6+")
    keep_prepared_txn: bool = boolean(versions="6+")  # keeps a prepared transaction open (KIP-939)


class InitProducerIdResponse(Response, api_key=22, versions="0-6", flexible="2+"):
    """The producer id and epoch to write with."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)  # -1 if the request fails
    producer_epoch: int = int16()
    # the producer id of the kept transaction; -1 if there is none
    ongoing_txn_producer_id: int = int64(versions="6+", default=-1)
    ongoing_txn_producer_epoch: int = int16(versions="6+", default=-1)
