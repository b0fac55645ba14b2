"""ExpireDelegationToken (key 40): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, bytestring, int16, int32, int64


class ExpireDelegationTokenRequest(Request, api_key=40, versions="0-2", flexible="2+"):
    """DOC"""

    hmac: bytes = bytestring()
    expiry_time_period_ms: int = int64()


class ExpireDelegationTokenResponse(Response, api_key=40, versions="0-2", flexible="2+"):
    """DOC"""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
