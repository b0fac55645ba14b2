"""CreateDelegationToken (key 38): a secret that stands for its owner, for a while (KIP-48)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, bytestring, int16, int32, int64, string


class CreatableRenewers(Struct):
    """One who may renew the token, besides its owner."""

    principal_type: str = string()  # User
    principal_name: str = string()


class CreateDelegationTokenRequest(Request, api_key=38, versions="0-3", flexible="2+"):
    """Make a token."""

    owner_principal_type: str | None = string(versions="3+", nullable="0+")  # User
    owner_principal_name: str | None = string(versions="3+", nullable="0+")  # null, empty: who asks (KIP-373)
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()  # not above delegation.token.max.lifetime.ms, which counts if this is not positive


class CreateDelegationTokenResponse(Response, api_key=38, versions="0-3", flexible="2+"):
    """The token."""

    error_code: int = int16()
    principal_type: str = string()  # of the owner
    principal_name: str = string()  # of the owner
    token_requester_principal_type: str = string(versions="3+")  # of who asked for it
    token_requester_principal_name: str = string(versions="3+")  # of who asked for it
    issue_timestamp_ms: int = int64()  # milliseconds since 1970, as the next two
    expiry_timestamp_ms: int = int64()  # until then it is good, unless renewed
    max_timestamp_ms: int = int64()  # beyond it no renewal helps
    token_id: str = string()  # the user name to authenticate with
    hmac: bytes = bytestring()  # the secret; in base64 it is the password
    throttle_time_ms: int = int32()
