"""AlterUserScramCredentials (key 51): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, bytestring, int8, int16, int32, string


class ScramCredentialDeletion(Struct):
    """DOC"""

    name: str = string()
    mechanism: int = int8()


class ScramCredentialUpsertion(Struct):
    """DOC"""

    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = bytestring()
    salted_password: bytes = bytestring()


class AlterUserScramCredentialsRequest(Request, api_key=51, versions="0", flexible="0+"):
    """DOC"""

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Struct):
    """DOC"""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class AlterUserScramCredentialsResponse(Response, api_key=51, versions="0", flexible="0+"):
    """DOC"""

    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
