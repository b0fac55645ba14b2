"""UnregisterBroker (key 64): remove the registration of a broker that will not return."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TEXT
from kafkacompat.wire.schema import Request, Response, int16, int32, string


class UnregisterBrokerRequest(Request, api_key=64, versions="0", flexible="0+"):
    """Unregister the given broker."""

    broker_id: int = int32(entity=BROKER)


class UnregisterBrokerResponse(Response, api_key=64, versions="0", flexible="0+"):
    """The outcome of unregistering the broker."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
