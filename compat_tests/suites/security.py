"""Users, passwords and rules of brokers of suites, set as an administrator sets them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kafkacompat.testing import RunningBroker
from kafkacompat.testing.provision import create_users
from kafkacompat.testing.security import PLAIN_MODULE, hash_passwords, quote


def request(kafka: RunningBroker, message: Any) -> Any:
    """Return the broker's response to a request of a superuser."""
    return kafka.call(kafka._nodes.running[0].request, message)


def set_scram_passwords(kafka: RunningBroker, user: str, password: str) -> None:
    """Let a user log in by SCRAM with either hash."""
    kafka.call(create_users, kafka._nodes, hash_passwords({user: password}))


def plain_login_module(passwords: Sequence[tuple[str, str]]) -> str:
    """Return the value of sasl.jaas.config for users of PLAIN."""
    users = " ".join(f"user_{name}={quote(password)}" for name, password in passwords)
    return f"{PLAIN_MODULE} required {users};"


def split_pem(text: str) -> list[str]:
    """Return the parts of a PEM file."""
    return re.findall(r"-----BEGIN .*?-----END [A-Z ]+-----\n", text, re.DOTALL)
