"""Users, passwords and rules of brokers of suites, set as an administrator sets them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from typing import Any

from kafkacompat.testing import RunningBroker
from kafkacompat.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)

MECHANISMS = {1: "sha256", 2: "sha512"}
"""The hashes of SCRAM by their numbers in requests."""
ITERATIONS = 4096


def request(kafka: RunningBroker, message: Any) -> Any:
    """Return the broker's response to a request of a superuser."""
    return kafka.call(kafka._nodes.running[0].request, message)


def set_scram_passwords(kafka: RunningBroker, user: str, password: str) -> None:
    """Let a user log in by SCRAM with either hash; a request alters a user once."""
    salt = os.urandom(16)
    for number, digest in MECHANISMS.items():
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, ITERATIONS)
        upsertion = ScramCredentialUpsertion(
            name=user, mechanism=number, iterations=ITERATIONS, salt=salt, salted_password=salted
        )
        response = request(kafka, AlterUserScramCredentialsRequest(upsertions=[upsertion]))
        assert [result.error_code for result in response.results] == [0], response


def plain_login_module(passwords: Sequence[tuple[str, str]]) -> str:
    """Return the value of sasl.jaas.config for users of PLAIN."""
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords)
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"


def split_pem(text: str) -> list[str]:
    """Return the parts of a PEM file."""
    return re.findall(r"-----BEGIN .*?-----END [A-Z ]+-----\n", text, re.DOTALL)
