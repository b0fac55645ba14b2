"""DescribeDelegationToken (key 41): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, bytestring, int16, int32, int64, string


class DescribeDelegationTokenOwner(Struct):
    """DOC"""

    principal_type: str = string()
    principal_name: str = string()


class DescribeDelegationTokenRequest(Request, api_key=41, versions="0-3", flexible="2+"):
    """DOC"""

    owners: list[DescribeDelegationTokenOwner] | None = array(DescribeDelegationTokenOwner, nullable="0+")


class DescribedDelegationTokenRenewer(Struct):
    """DOC"""

    principal_type: str = string()
    principal_name: str = string()


class DescribedDelegationToken(Struct):
    """DOC"""

    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(versions="3+")
    token_requester_principal_name: str = string(versions="3+")
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = bytestring()
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


class DescribeDelegationTokenResponse(Response, api_key=41, versions="0-3", flexible="2+"):
    """DOC"""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()
