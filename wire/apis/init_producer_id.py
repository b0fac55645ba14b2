"""InitProducerId (key 22): a producer id and epoch for idempotent or transactional writes."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, boolean, int16, int32, int64, string


class InitProducerIdRequest(Request, api_key=22, versions="0-6", flexible="2+"):
    """Ask for a producer id, or for a new epoch of the one held."""

    transactional_id: str | None = string(nullable="0+")  # null: idempotent only
    transaction_timeout_ms: int = int32()  # abort a transaction that lasts longer
    producer_id: int = int64(versions="3+", default=-1)  # -1: none yet
    producer_epoch: int = int16(versions="3+", default=-1)  # -1: none yet
    enable2_pc: bool = boolean(versions="6+")  # the client decides when to commit, however long it takes (KIP-939)
    keep_prepared_txn: bool = boolean(versions="6+")  # leave a transaction that was prepared as it is (KIP-939)


class InitProducerIdResponse(Response, api_key=22, versions="0-6", flexible="2+"):
    """The id and epoch to write with."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)  # -1 if the request fails
    producer_epoch: int = int16()
    # the transaction that was kept; -1 when there is none
    ongoing_txn_producer_id: int = int64(versions="6+", default=-1)
    ongoing_txn_producer_epoch: int = int16(versions="6+", default=-1)
