"""DescribeUserScramCredentials (key 50): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class UserName(Struct):
    """DOC"""

    name: str = string()


class DescribeUserScramCredentialsRequest(Request, api_key=50, versions="0", flexible="0+"):
    """DOC"""

    users: list[UserName] | None = array(UserName, nullable="0+")


class CredentialInfo(Struct):
    """DOC"""

    mechanism: int = int8()
    iterations: int = int32()


class DescribeUserScramCredentialsResult(Struct):
    """DOC"""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


class DescribeUserScramCredentialsResponse(Response, api_key=50, versions="0", flexible="0+"):
    """DOC"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
