"""DescribeDelegationToken (key 41): the delegation tokens that the client may see (KIP-48)."""

from __future__ import annotations

from kafkacompat.wire.entities import USER
from kafkacompat.wire.schema import Request, Response, Struct, array, bytestring, int16, int32, int64, string


class DescribeDelegationTokenOwner(Struct):
    """An owner of tokens to describe."""

    principal_type: str = string()  # the type, always User
    principal_name: str = string(entity=USER)


class DescribeDelegationTokenRequest(Request, api_key=41, versions="0-3", flexible="2+"):
    """Describe the tokens of the given owners."""

    # null: all owners, empty: none
    owners: list[DescribeDelegationTokenOwner] | None = array(DescribeDelegationTokenOwner, nullable="0+")


class DescribedDelegationTokenRenewer(Struct):
    """A principal that may renew the token, as its owner may."""

    principal_type: str = string()  # the type, always User
    principal_name: str = string(entity=USER)


class DescribedDelegationToken(Struct):
    """One token."""

    principal_type: str = string()  # the owner's type
    principal_name: str = string(entity=USER)  # the owner's name
    token_requester_principal_type: str = string(versions="3+")  # the requester's type
    token_requester_principal_name: str = string(versions="3+", entity=USER)  # the requester's name
    issue_timestamp: int = int64()  # in ms since 1970, as are the next two fields
    expiry_timestamp: int = int64()  # the time of expiry, unless the token is renewed
    max_timestamp: int = int64()  # the latest time of expiry that a renewal can set
    token_id: str = string()  # the user name for authentication
    hmac: bytes = bytestring()  # the secret; the password for authentication is its base64 form
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


class DescribeDelegationTokenResponse(Response, api_key=41, versions="0-3", flexible="2+"):
    """The tokens of the owners."""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()
