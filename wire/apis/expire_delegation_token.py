"""ExpireDelegationToken (key 40): expire a delegation token, now or at a given time (KIP-48)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, bytestring, int16, int32, int64


class ExpireDelegationTokenRequest(Request, api_key=40, versions="0-2", flexible="2+"):
    """Expire the token with the given secret."""

    hmac: bytes = bytestring()  # the secret, as returned by CreateDelegationToken
    expiry_time_period_ms: int = int64()  # the time from now; negative: expires immediately


class ExpireDelegationTokenResponse(Response, api_key=40, versions="0-2", flexible="2+"):
    """The new time of expiry."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()  # in ms since 1970; at most the token's max_timestamp
    throttle_time_ms: int = int32()
