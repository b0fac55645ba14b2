"""DescribeDelegationToken (key 41): the delegation tokens that the client may see (KIP-48)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, bytestring, int16, int32, int64, string


class DescribeDelegationTokenOwner(Struct):
    """An owner whose tokens are wanted."""

    principal_type: str = string()  # User
    principal_name: str = string()


class DescribeDelegationTokenRequest(Request, api_key=41, versions="0-3", flexible="2+"):
    """Describe the tokens of these owners."""

    # null: all, empty: none
    owners: list[DescribeDelegationTokenOwner] | None = array(DescribeDelegationTokenOwner, nullable="0+")


class DescribedDelegationTokenRenewer(Struct):
    """One who may renew the token, besides its owner."""

    principal_type: str = string()  # User
    principal_name: str = string()


class DescribedDelegationToken(Struct):
    """One token."""

    principal_type: str = string()  # of the owner
    principal_name: str = string()  # of the owner
    token_requester_principal_type: str = string(versions="3+")  # of who asked for it
    token_requester_principal_name: str = string(versions="3+")  # of who asked for it
    issue_timestamp: int = int64()  # milliseconds since 1970, as the next two
    expiry_timestamp: int = int64()  # until then it is good, unless renewed
    max_timestamp: int = int64()  # beyond it no renewal helps
    token_id: str = string()  # the user name to authenticate with
    hmac: bytes = bytestring()  # the secret; in base64 it is the password
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


class DescribeDelegationTokenResponse(Response, api_key=41, versions="0-3", flexible="2+"):
    """The tokens."""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()
