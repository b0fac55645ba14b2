"""Principals: the users that requests count for."""

from __future__ import annotations

from typing import NamedTuple

from kafkacompat.wire.principal import DefaultPrincipalData, decode_principal, encode_principal

USER_TYPE = "User"
USER_PREFIX = f"{USER_TYPE}:"
"""Begins the text of a user's principal."""


class Principal(NamedTuple):
    """A user, in Kafka's notation ``User:alice``; ``by_token`` says that a delegation token has authenticated it."""

    kind: str
    name: str
    by_token: bool = False

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal(USER_TYPE, "ANONYMOUS")
"""The principal of a client that has not authenticated itself."""


def parse_principal(text: str) -> Principal:
    """Parse ``TYPE:NAME``; the name may contain colons. Raises ValueError."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"the principal {text!r} is not valid: it takes the form {USER_TYPE}:NAME")
    return Principal(kind, name)


def pack_principal(principal: Principal) -> bytes:
    """Encode a principal for an Envelope."""
    kind, name, by_token = principal
    return encode_principal(DefaultPrincipalData(type=kind, name=name, token_authenticated=by_token))


def unpack_principal(data: bytes) -> Principal:
    """Decode a principal of an Envelope; raises MalformedError."""
    decoded = decode_principal(data)
    return Principal(decoded.type, decoded.name, decoded.token_authenticated)
