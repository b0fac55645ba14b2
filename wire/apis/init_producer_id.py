"""InitProducerId (key 22): a producer id and epoch for idempotent or transactional writes."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, int16, int32, int64, string


class InitProducerIdRequest(Request, api_key=22, versions="0-5", flexible="2+"):
    """Ask for a producer id, or for a new epoch of the one held."""

    transactional_id: str | None = string(nullable="0+")  # null: idempotent only
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(versions="3+", default=-1)  # -1: none yet
    producer_epoch: int = int16(versions="3+", default=-1)  # -1: none yet


class InitProducerIdResponse(Response, api_key=22, versions="0-5", flexible="2+"):
    """The id and epoch to write with."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)  # -1 with an error
    producer_epoch: int = int16()
