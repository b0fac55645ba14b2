"""The principal in an Envelope, in the form of Apache Kafka's default principal builder (KIP-590): a version, then the message."""

from __future__ import annotations

import struct

from kafkacompat.wire.compiler import decode_message, encode_message
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import Message, boolean, string

_VERSION = struct.Struct(">h")


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    """A client's identity."""

    type: str = string()  # "User"
    name: str = string()
    token_authenticated: bool = boolean()  # the client has used a delegation token


def encode_principal(principal: DefaultPrincipalData) -> bytes:
    """Encode a principal in the newest version."""
    version = DefaultPrincipalData.VERSIONS.last
    return _VERSION.pack(version) + encode_message(principal, version)


def decode_principal(data: bytes) -> DefaultPrincipalData:
    """Decode a principal; raises MalformedError."""
    if len(data) < _VERSION.size:
        raise MalformedError(f"a principal of {len(data)} bytes has no whole version")
    version = _VERSION.unpack_from(data)[0]
    if version not in DefaultPrincipalData.VERSIONS:
        raise MalformedError(f"principals of version {version} are not known")
    return decode_message(DefaultPrincipalData, data[_VERSION.size :], version)
