"""Nodes with a listener that has SASL beside one that has none: ours and Apache Kafka, with the same users."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compat_tests.brokers import Broker, KafkaBroker, KafkacompatBroker
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from kafkacompat.security.sasl.client import ClientLogin, ScramClient
from kafkacompat.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

PASSWORDS = {"alice": "alice-pa55word", "bob": "bob-pa55word", "carol": "carol-pa55word"}
"""Alice and bob are users of PLAIN, carol of SCRAM."""
TOKEN_KEY = "token-k3y"
REAUTHENTICATION_MS = 2000
REAUTHENTICATED = "SCRAM-SHA-512"
"""The mechanism whose sessions are limited."""
_SCRAM = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}


def make_properties(port: int, sasl_port: int) -> dict[str, str]:
    """Return the server properties that both kinds of nodes share."""
    prefix = "listener.name.sasl"
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{prefix}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required"
        + "".join(f' user_{user}="{PASSWORDS[user]}"' for user in ("alice", "bob"))
        + ";",
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{prefix}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{prefix}.oauthbearer.sasl.jaas.config": f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker";',
        f"{prefix}.{REAUTHENTICATED.lower()}.connections.max.reauth.ms": str(REAUTHENTICATION_MS),
        "delegation.token.secret.key": TOKEN_KEY,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    }


class SaslKafkacompat(KafkacompatBroker):
    """Ours, by a properties file: secrets do not belong on a command line."""

    def prepare(self) -> None:
        super().prepare()
        properties = {
            "node.id": "1",
            "process.roles": "broker,controller",
            "log.dirs": str(self.data_folder),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **self.properties,
        }
        self._properties_file().write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def command(self) -> Sequence[str]:
        return [sys.executable, "-m", "kafkacompat", "serve", str(self._properties_file())]


class SaslNode:
    """A running node; ``plain`` is its broker, whose port has no SASL."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.plain: Broker = KafkaBroker(folder) if kind == "kafka" else SaslKafkacompat(folder)
        self.port = add_sasl_listener(self.plain)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.plain.start()
        add_scram_user(self.plain.port, "carol", PASSWORDS["carol"])


def run_node(kind: str, folder: Path) -> Iterator[SaslNode]:
    """Start a node, and stop it at the end."""
    running = SaslNode(kind, folder)
    try:
        running.start()
        yield running
    finally:
        running.plain.stop()


def add_sasl_listener(broker: Broker) -> int:
    """Give a broker that is not started a second listener, with SASL; return its port."""
    port = free_port()
    properties = make_properties(broker.port, port)
    if broker.kind == KafkaBroker.kind:
        controller_port = free_port()
        properties["listeners"] += f",CONTROLLER://127.0.0.1:{controller_port}"
        properties["controller.quorum.voters"] = f"1@127.0.0.1:{controller_port}"
    broker.properties.update(properties)
    return port


def add_scram_user(port: int, user: str, password: str) -> None:
    """Create the credentials of a user by a listener without SASL."""
    salt = b"1kq2nz9ihiknapgeigk07i6ghj"
    with RawClient(port) as client:
        for number, digest in _SCRAM.values():
            upsertion = ScramCredentialUpsertion(
                name=user,
                mechanism=number,
                iterations=4096,
                salt=salt,
                salted_password=hashlib.pbkdf2_hmac(digest, password.encode(), salt, 4096),
            )
            request = AlterUserScramCredentialsRequest(upsertions=[upsertion])
            answer = client.call(request, AlterUserScramCredentialsResponse, 0)
            assert [result.error_code for result in answer.results] == [0], answer


def handshake(client: RawClient, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    return client.call(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, version)


def authenticate(client: RawClient, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
    return client.call(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse, version)


def log_in_plain(client: RawClient, user: str = "alice", password: str | None = None) -> SaslAuthenticateResponse:
    handshake(client, "PLAIN")
    return authenticate(client, f"\0{user}\0{PASSWORDS.get(user) if password is None else password}".encode())


def log_in_scram(
    client: RawClient, mechanism: str, user: str, password: str, *, by_token: bool = False
) -> SaslAuthenticateResponse:
    """Authenticate; returns the first response with an error, or the last."""
    handshake(client, mechanism)
    scram = ScramClient(ClientLogin(mechanism, user, password, by_token), "a-client-nonce")
    response = authenticate(client, scram.begin())
    if response.error_code:
        return response
    final = scram.evaluate(bytes(response.auth_bytes))
    assert final is not None
    response = authenticate(client, final)
    if not response.error_code:
        assert scram.evaluate(bytes(response.auth_bytes)) is None
    return response


def make_unsecured_token(subject: str, lifetime_s: float = 60) -> str:
    now = time.time()

    def encode(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{encode({'alg': 'none'})}.{encode({'sub': subject, 'iat': now - 1, 'exp': now + lifetime_s})}."


def make_bearer_message(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def compute_token_hmac(token_id: str) -> bytes:
    return hmac.new(TOKEN_KEY.encode(), token_id.encode(), hashlib.sha512).digest()


def log_in_by_token(node: SaslNode, token_id: str, password: str) -> bool:
    """Return whether a token is accepted."""
    with RawClient(node.port) as client:
        return not log_in_scram(client, "SCRAM-SHA-256", token_id, password, by_token=True).error_code
