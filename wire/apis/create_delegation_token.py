"""CreateDelegationToken (key 38): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, bytestring, int16, int32, int64, string


class CreatableRenewers(Struct):
    """DOC"""

    principal_type: str = string()
    principal_name: str = string()


class CreateDelegationTokenRequest(Request, api_key=38, versions="0-3", flexible="2+"):
    """DOC"""

    owner_principal_type: str | None = string(versions="3+", nullable="0+")
    owner_principal_name: str | None = string(versions="3+", nullable="0+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


class CreateDelegationTokenResponse(Response, api_key=38, versions="0-3", flexible="2+"):
    """DOC"""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(versions="3+")
    token_requester_principal_name: str = string(versions="3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = bytestring()
    throttle_time_ms: int = int32()
