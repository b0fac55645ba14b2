"""CreateDelegationToken (key 38): create a secret that authenticates its owner for a limited time (KIP-48)."""

from __future__ import annotations

from kafkacompat.wire.entities import USER
from kafkacompat.wire.schema import Request, Response, Struct, array, bytestring, int16, int32, int64, string


class CreatableRenewers(Struct):
    """A principal that may renew the token, as its owner may."""

    principal_type: str = string()  # the type, always User
    principal_name: str = string(entity=USER)


class CreateDelegationTokenRequest(Request, api_key=38, versions="0-3", flexible="2+"):
    """Create a token."""

    owner_principal_type: str | None = string(versions="3+", nullable="0+")  # the type, always User
    owner_principal_name: str | None = string(
        versions="3+", nullable="0+", entity=USER
    )  # null or empty: the requester (KIP-373)
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()  # at most delegation.token.max.lifetime.ms, the default if not positive


class CreateDelegationTokenResponse(Response, api_key=38, versions="0-3", flexible="2+"):
    """The new token."""

    error_code: int = int16()
    principal_type: str = string()  # the owner's type
    principal_name: str = string(entity=USER)  # the owner's name
    token_requester_principal_type: str = string(versions="3+")  # the requester's type
    token_requester_principal_name: str = string(versions="3+", entity=USER)  # the requester's name
    issue_timestamp_ms: int = int64()  # in ms since 1970, as are the next two fields
    expiry_timestamp_ms: int = int64()  # the time of expiry, unless the token is renewed
    max_timestamp_ms: int = int64()  # the latest time of expiry that a renewal can set
    token_id: str = string()  # the user name for authentication
    hmac: bytes = bytestring()  # the secret; the password for authentication is its base64 form
    throttle_time_ms: int = int32()
