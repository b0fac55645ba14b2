"""Signed bearer tokens, whose keys come from an identity provider over HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from compat_tests.sasl_nodes import SaslKafkacompat, authenticate, handshake, make_bearer_message, make_unsecured_token
from compat_tests.waiting import until
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateResponse
from kafkacompat.wire.errors import ErrorCode

OLD_KEY, NEW_KEY = (rsa.generate_private_key(65537, 2048) for _ in range(2))


class Provider:
    """An identity provider: it answers with what ``body`` and ``status`` say, and counts its answers."""

    def __init__(self) -> None:
        self.status = 200
        self.body = make_key_set(old=OLD_KEY)
        self.requests = 0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.requests += 1
                self.send_response(provider.status)
                self.send_header("Content-Length", str(len(provider.body)))
                self.end_headers()
                self.wfile.write(provider.body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/keys"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def make_key_set(**keys: rsa.RSAPrivateKey) -> bytes:
    listed = [{**json.loads(RSAAlgorithm.to_jwk(key.public_key())), "kid": name} for name, key in keys.items()]
    return json.dumps({"keys": listed}).encode()


def make_token(key: rsa.RSAPrivateKey = OLD_KEY, key_id: str = "old", **claims: Any) -> str:
    now = int(time.time())
    default = {"sub": "alice", "iat": now, "exp": now + 60, "aud": "kafka", "iss": "https://issuer"}
    return jwt.encode({**default, **claims}, key, algorithm="RS256", headers={"kid": key_id})


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    running = Provider()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def port(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a listener that accepts the provider's tokens."""
    folder: Path = tmp_path_factory.mktemp("oauth") / "node"
    node, sasl_port = SaslKafkacompat(folder), free_port()
    node.properties.update(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{node.port},SASL://127.0.0.1:{sasl_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": provider.url,
            "sasl.oauthbearer.expected.audience": "kafka,other",
            "sasl.oauthbearer.expected.issuer": "https://issuer",
        }
    )
    with node:
        yield sasl_port
        log = node.stderr()
    assert "Traceback" not in log and "eyJ" not in log, log


def log_in(port: int, token: str) -> SaslAuthenticateResponse:
    """Send a token; return the first response, or that to the confirmation of a refused token."""
    with RawClient(port) as client:
        handshake(client, "OAUTHBEARER")
        answer = authenticate(client, make_bearer_message(token))
        if bytes(answer.auth_bytes):
            assert bytes(answer.auth_bytes) == b'{"status":"invalid_token"}'
            return authenticate(client, b"\x01")
        return answer


def test_a_token_of_the_provider(port: int) -> None:
    until(lambda: log_in(port, make_token()).error_code == 0)
    answer = log_in(port, make_token())
    assert 50_000 < answer.session_lifetime_ms <= 60_000


def test_tokens_that_are_refused(port: int) -> None:
    for token in (
        make_token(NEW_KEY),
        make_token(exp=int(time.time()) - 60),
        make_token(aud="somebody"),
        make_token(iss="https://other"),
        make_unsecured_token("alice"),
        "a.b.c",
    ):
        answer = log_in(port, token)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == '{"status":"invalid_token"}'


def test_a_new_key_is_fetched_for_the_first_token_that_needs_it(port: int, provider: Provider) -> None:
    log_in(port, make_token())
    before = provider.requests
    provider.body = make_key_set(old=OLD_KEY, new=NEW_KEY)
    until(lambda: not log_in(port, make_token(NEW_KEY, "new")).error_code)
    # Others with unknown keys lead to no further fetch.
    for number in range(20):
        assert log_in(port, make_token(NEW_KEY, f"unknown-{number}")).error_code
    assert provider.requests < before + 10


def test_a_client_of_librdkafka(port: int) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (make_token(), time.time() + 60),
        }
    )
    producer.produce("by-a-signed-token", value="x")
    assert producer.flush(30) == 0
