"""SCRAM credentials (RFC 5802): a broker stores these instead of passwords, and cannot compute a password from them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from enum import IntEnum
from random import Random
from typing import NamedTuple

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
"""Bounds of the iterations of a new credential, as in Kafka."""
_NONCE_BITS = 130


class ScramMechanism(IntEnum):
    """A mechanism by its number on the wire (KIP-554)."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """The name by which clients choose it."""
        return f"SCRAM-{self.name.replace('_', '-')}"

    @property
    def digest(self) -> str:
        """The name of its hash function in hashlib."""
        return self.name.replace("_", "").lower()


SCRAM_MECHANISMS: Mapping[str, ScramMechanism] = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}
"""The mechanisms by the names that clients choose them by."""


class ScramCredential(NamedTuple):
    """Keys that prove a client's knowledge of its password to the broker, and the broker's to the client."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations}, the rest is secret)"


def draw_nonce(rng: Random) -> str:
    """Return the random text by which one side of an authentication makes it unlike any other."""
    return f"{rng.getrandbits(_NONCE_BITS):033x}"


def derive_credential(
    mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int
) -> ScramCredential:
    """Derive the credential from a password that the client has salted and hashed *iterations* times."""
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.digest)
    server_key = hmac.digest(salted_password, b"Server Key", mechanism.digest)
    return ScramCredential(salt, hashlib.new(mechanism.digest, client_key).digest(), server_key, iterations)


def format_credential(credential: ScramCredential) -> str:
    """Write a credential as Kafka kept it in ZooKeeper."""
    secrets = (("salt", credential.salt), ("stored_key", credential.stored_key), ("server_key", credential.server_key))
    words = [f"{name}={base64.b64encode(secret).decode()}" for name, secret in secrets]
    return ",".join([*words, f"iterations={credential.iterations}"])


def parse_credential(text: str) -> ScramCredential:
    """Parse a text that `format_credential` wrote; raises ValueError, whose message shows no part of the text."""
    fields = dict(word.partition("=")[::2] for word in text.split(","))
    try:
        salt, stored_key, server_key = (
            base64.b64decode(fields[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
        return ScramCredential(salt, stored_key, server_key, int(fields["iterations"]))
    except (KeyError, ValueError):
        raise ValueError("a SCRAM credential is malformed") from None
