"""AlterUserScramCredentials (key 51): set and delete the SCRAM passwords of users."""

from __future__ import annotations

from kafkacompat.wire.entities import TEXT, USER
from kafkacompat.wire.schema import Request, Response, Struct, array, bytestring, int8, int16, int32, string


class ScramCredentialDeletion(Struct):
    """A password to delete."""

    name: str = string(entity=USER)
    mechanism: int = int8()  # 1: SCRAM-SHA-256, 2: SCRAM-SHA-512


class ScramCredentialUpsertion(Struct):
    """A password to set. The client salts and hashes it, so the broker never receives the plain text."""

    name: str = string(entity=USER)
    mechanism: int = int8()  # 1: SCRAM-SHA-256, 2: SCRAM-SHA-512
    iterations: int = int32()  # iterations of the hash, 4,096 to 16,384
    salt: bytes = bytestring()  # random bytes that the client chooses
    salted_password: bytes = bytestring()  # the hash after all iterations


class AlterUserScramCredentialsRequest(Request, api_key=51, versions="0", flexible="0+"):
    """Delete and set passwords. Each pair of user and mechanism may occur once."""

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Struct):
    """The outcome for one user."""

    user: str = string(entity=USER)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)


class AlterUserScramCredentialsResponse(Response, api_key=51, versions="0", flexible="0+"):
    """The outcome for each user in the deletions and upsertions."""

    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
