"""UnregisterBroker (key 64): forget a broker that will not come back."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, int16, int32, string


class UnregisterBrokerRequest(Request, api_key=64, versions="0", flexible="0+"):
    """Forget this broker."""

    broker_id: int = int32()


class UnregisterBrokerResponse(Response, api_key=64, versions="0", flexible="0+"):
    """Whether it is forgotten."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
