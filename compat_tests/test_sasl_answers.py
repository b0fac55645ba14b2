"""The answers of SASL and about tokens, compared with Apache Kafka's: byte for byte where possible."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from compat_tests.raw_client import ClosedError, RawClient
from compat_tests.sasl_nodes import (
    PASSWORDS,
    SaslNode,
    compute_token_hmac,
    log_in_by_token,
    log_in_plain,
    log_in_scram,
    make_bearer_message,
    make_unsecured_token,
    run_node,
)
from compat_tests.waiting import until
from kafkacompat.wire.apis.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkacompat.wire.apis.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkacompat.wire.apis.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from kafkacompat.wire.apis.metadata import MetadataRequest
from kafkacompat.wire.apis.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest
from kafkacompat.wire.errors import ErrorCode

pytestmark = pytest.mark.compare


@pytest.fixture(scope="module")
def node(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    """The node under test."""
    yield from run_node(broker_kind, tmp_path_factory.mktemp("sasl") / "node")


@pytest.fixture(scope="module")
def kafka(broker_kind: str, node: SaslNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    """Apache Kafka beside it."""
    if broker_kind == "kafka":
        yield node
    else:
        yield from run_node("kafka", tmp_path_factory.mktemp("sasl-kafka") / "node")


Scenario = Callable[[RawClient], None]


def send_handshake(mechanism: str, version: int = 1) -> Scenario:
    return lambda client: client.send(SaslHandshakeRequest(mechanism=mechanism), version)


def send_token(token: bytes, version: int = 2) -> Scenario:
    return lambda client: client.send(SaslAuthenticateRequest(auth_bytes=token), version)


def send_bare(frame: bytes) -> Scenario:
    return lambda client: client.send_frame(frame)


def send_metadata(client: RawClient) -> None:
    client.send(MetadataRequest(topics=[]), 4)


ALICE = f"\0alice\0{PASSWORDS['alice']}".encode()
WRONG = b"\0alice\0wrong"
BEARER = make_bearer_message(make_unsecured_token("erin", -100))

SCENARIOS: dict[str, list[Scenario]] = {
    "unknown mechanism": [send_handshake("GSSAPI")],
    "unknown mechanism 0": [send_handshake("GSSAPI", 0)],
    "no mechanism": [send_handshake("")],
    "password": [send_handshake("PLAIN"), send_token(ALICE)],
    "password 0": [send_handshake("PLAIN"), send_token(ALICE, 0)],
    "password 1": [send_handshake("PLAIN"), send_token(ALICE, 1)],
    "wrong password": [send_handshake("PLAIN"), send_token(WRONG)],
    "wrong password 0": [send_handshake("PLAIN"), send_token(WRONG, 0)],
    "unknown user": [send_handshake("PLAIN"), send_token(b"\0mallory\0x")],
    "no user": [send_handshake("PLAIN"), send_token(b"\0\0x")],
    "no password": [send_handshake("PLAIN"), send_token(b"\0alice\0")],
    "another user": [send_handshake("PLAIN"), send_token(b"bob" + ALICE)],
    "nothing": [send_handshake("PLAIN"), send_token(b"")],
    "two parts": [send_handshake("PLAIN"), send_token(b"alice\0x")],
    "four parts": [send_handshake("PLAIN"), send_token(ALICE + b"\0x")],
    "five parts": [send_handshake("PLAIN"), send_token(ALICE + b"\0x\0y")],
    "no text": [send_handshake("PLAIN"), send_token(b"\0\xff\xfe\0x")],
    "bare password": [send_handshake("PLAIN", 0), send_bare(ALICE)],
    "bare wrong password": [send_handshake("PLAIN", 0), send_bare(WRONG)],
    "no SCRAM": [send_handshake("SCRAM-SHA-256"), send_token(b"nonsense")],
    "another SCRAM user": [send_handshake("SCRAM-SHA-256"), send_token(b"n,a=bob,n=carol,r=x")],
    "no bearer": [send_handshake("OAUTHBEARER"), send_token(b"nonsense")],
    "bad bearer": [send_handshake("OAUTHBEARER"), send_token(BEARER), send_token(b"\x01")],
    "handshake after": [send_handshake("PLAIN"), send_token(ALICE), send_handshake("PLAIN")],
    "authentication after": [send_handshake("PLAIN"), send_token(ALICE), send_token(ALICE)],
    "request before": [send_metadata],
    "authentication before": [send_token(ALICE)],
    "handshake twice": [send_handshake("PLAIN"), send_handshake("PLAIN")],
    "GSSAPI of 0.9": [send_bare(b"\x60\x82\x02\x5d\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02")],
    "empty frame": [send_bare(b"")],
    "handshake 2": [send_bare(b"\0\x11\0\x02\0\0\0\1\0\0\0\5PLAIN")],
}
CLOSED_SILENTLY = {"handshake twice"}
"""Kafka answers these with an error of the unexpected request first."""


def play(port: int, scenario: list[Scenario]) -> list[bytes | None]:
    """Send requests one after the other; return the frames that come back, None for the end of the connection."""
    frames: list[bytes | None] = []
    with RawClient(port) as client:
        for step in scenario:
            step(client)
            try:
                frames.append(client.receive_frame())
            except (ClosedError, ConnectionError):
                return [*frames, None]
        client.socket.settimeout(0.5)
        with suppress(TimeoutError):
            if client.is_closed():
                frames.append(None)
    return frames


@pytest.mark.parametrize("title", SCENARIOS)
def test_the_same_bytes_as_kafka(node: SaslNode, kafka: SaslNode, title: str) -> None:
    ours, theirs = play(node.port, SCENARIOS[title]), play(kafka.port, SCENARIOS[title])
    if title in CLOSED_SILENTLY:
        assert ours[-1] is None and theirs[-1] is None
    else:
        assert ours == theirs


def test_the_same_failures_of_scram_as_kafka(node: SaslNode, kafka: SaslNode) -> None:
    """An unknown user fails with its proof here, and before it in Kafka; the client receives the same error."""
    for user, password in (("carol", "wrong"), ("mallory", "x"), ("alice", PASSWORDS["alice"])):
        answers = []
        for subject in (node, kafka):
            with RawClient(subject.port) as client:
                answers.append(log_in_scram(client, "SCRAM-SHA-256", user, password))
                assert client.is_closed()
        assert answers[0] == answers[1]
        assert answers[0].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_the_same_answers_about_tokens_as_kafka(node: SaslNode, kafka: SaslNode) -> None:
    assert observe_tokens(node) == observe_tokens(kafka)


def observe_tokens(node: SaslNode) -> list[Any]:
    """Ask everything about tokens; return codes, and times relative to the token's."""
    seen: list[Any] = []
    with RawClient(node.port) as alice, RawClient(node.port) as bob, RawClient(node.plain.port) as anonymous:
        log_in_plain(alice)
        log_in_plain(bob, "bob")
        seen.append(anonymous.call(CreateDelegationTokenRequest(), CreateDelegationTokenResponse, 3))
        seen.append(anonymous.call(DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse, 3))
        renewers = [CreatableRenewers(principal_type="User", principal_name="carol")]
        wrong = [CreatableRenewers(principal_type="Group", principal_name="x")]
        refused = alice.call(
            CreateDelegationTokenRequest(renewers=wrong, max_lifetime_ms=-1), CreateDelegationTokenResponse, 3
        )
        seen.append(refused.error_code)
        token = alice.call(
            CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=3_600_000), CreateDelegationTokenResponse, 3
        )
        secret, issued = bytes(token.hmac), token.issue_timestamp_ms
        assert secret == compute_token_hmac(token.token_id)
        seen.append(
            (
                token.error_code,
                token.principal_name,
                token.expiry_timestamp_ms - issued,
                token.max_timestamp_ms - issued,
            )
        )
        renew = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=-1)
        # Kafka's controller finds a token a moment after its creation.
        not_found = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        until(lambda: alice.call(renew, RenewDelegationTokenResponse, 2).error_code != not_found)
        for user in (alice, bob):
            renewed = user.call(renew, RenewDelegationTokenResponse, 2)
            seen.append((renewed.error_code, renewed.expiry_timestamp_ms - issued if not renewed.error_code else 0))
        unknown = alice.call(RenewDelegationTokenRequest(hmac=b"x"), RenewDelegationTokenResponse, 2)
        seen.append(unknown.error_code)
        until(lambda: len(describe_tokens(alice)) >= 1)
        login = (token.token_id, base64.b64encode(secret).decode())
        with RawClient(node.port) as bearer:
            seen.append(until(lambda: log_in_by_token(node, *login)))
            lifetime = log_in_scram(bearer, "SCRAM-SHA-256", *login, by_token=True).session_lifetime_ms
            seen.append(lifetime // 60_000)
            seen.append(bearer.call(CreateDelegationTokenRequest(), CreateDelegationTokenResponse, 3))
            seen.append(bearer.call(DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse, 3))
        with RawClient(node.port) as bearer:
            seen.append(log_in_scram(bearer, "SCRAM-SHA-256", token.token_id, "wrong", by_token=True))
        with RawClient(node.port) as bearer:
            seen.append(log_in_scram(bearer, "SCRAM-SHA-256", *login))
        for user in (bob, alice, alice):
            request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=-1)
            seen.append(user.call(request, ExpireDelegationTokenResponse, 2).error_code)
    return seen


def describe_tokens(client: RawClient) -> list[Any]:
    return client.call(DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse, 3).tokens
