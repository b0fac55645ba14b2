"""AllocateProducerIds (key 67): a broker requests a block of producer ids from the controller (KIP-730)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER
from kafkacompat.wire.schema import Request, Response, int16, int32, int64


class AllocateProducerIdsRequest(Request, api_key=67, versions="0", flexible="0+"):
    """Request a block of producer ids."""

    broker_id: int = int32(entity=BROKER)
    broker_epoch: int = int64(default=-1)


class AllocateProducerIdsResponse(Response, api_key=67, versions="0", flexible="0+"):
    """A block of ids that the controller gives to no other broker."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()  # the first id of the block
    producer_id_len: int = int32()  # the number of ids in the block
