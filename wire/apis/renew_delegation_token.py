"""RenewDelegationToken (key 39): extend the lifetime of a delegation token (KIP-48)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, bytestring, int16, int32, int64


class RenewDelegationTokenRequest(Request, api_key=39, versions="0-2", flexible="2+"):
    """Renew the token with the given secret."""

    hmac: bytes = bytestring()  # the secret, as returned by CreateDelegationToken
    # the time from now; at most delegation.token.expiry.time.ms, the default if not positive
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Response, api_key=39, versions="0-2", flexible="2+"):
    """The new time of expiry."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()  # in ms since 1970; at most the token's max_timestamp
    throttle_time_ms: int = int32()
