"""DescribeUserScramCredentials (key 50): the users with SCRAM passwords and the hash parameters (KIP-554)."""

from __future__ import annotations

from kafkacompat.wire.entities import TEXT, USER
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class UserName(Struct):
    """A user to describe."""

    name: str = string(entity=USER)


class DescribeUserScramCredentialsRequest(Request, api_key=50, versions="0", flexible="0+"):
    """Describe the credentials of the given users."""

    users: list[UserName] | None = array(UserName, nullable="0+")  # null or empty: all users with credentials


class CredentialInfo(Struct):
    """One credential, without its secret."""

    mechanism: int = int8()  # 1: SCRAM-SHA-256, 2: SCRAM-SHA-512
    iterations: int = int32()  # iterations of the hash, 4096 to 16384


class DescribeUserScramCredentialsResult(Struct):
    """The credentials of one user. The error for a user without any is RESOURCE_NOT_FOUND."""

    user: str = string(entity=USER)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


class DescribeUserScramCredentialsResponse(Response, api_key=50, versions="0", flexible="0+"):
    """The credentials of the users."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
