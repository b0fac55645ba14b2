"""ExpireDelegationToken (key 40): let a delegation token end, now or at a set time (KIP-48)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, bytestring, int16, int32, int64


class ExpireDelegationTokenRequest(Request, api_key=40, versions="0-2", flexible="2+"):
    """End the token with this secret."""

    hmac: bytes = bytestring()  # the secret, as CreateDelegationToken answered it
    expiry_time_period_ms: int = int64()  # from now on; negative: at once


class ExpireDelegationTokenResponse(Response, api_key=40, versions="0-2", flexible="2+"):
    """How long it is good now."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()  # milliseconds since 1970; at most the token's max_timestamp
    throttle_time_ms: int = int32()
