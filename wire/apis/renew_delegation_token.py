"""RenewDelegationToken (key 39): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, bytestring, int16, int32, int64


class RenewDelegationTokenRequest(Request, api_key=39, versions="0-2", flexible="2+"):
    """DOC"""

    hmac: bytes = bytestring()
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Response, api_key=39, versions="0-2", flexible="2+"):
    """DOC"""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
