"""Bearer tokens of this broker: retrieved ahead, renewed in time, and sent to another broker."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.security.principals import Principal
from kafkacompat.security.sasl.bearer_login import BearerLogin, find_renewal_ms
from kafkacompat.security.sasl.client import BearerClient
from kafkacompat.security.sasl.login_settings import BearerSettings, RefreshRules
from kafkacompat.security.sasl.mechanism import SaslError
from kafkacompat.security.sasl.oauthbearer import BearerToken, OAuthBearerServer, TokenError
from kafkacompat.security.sasl.token_requests import (
    ClientToken,
    TokenEndpoint,
    TokenFile,
    TokenRequestError,
    UnsecuredClaims,
    parse_client_token,
)
from kafkacompat.security.sasl.unsecured_tokens import UnsecuredRules, check_unsecured_token

ENDPOINT = TokenEndpoint("https://issuer/token", "me:1", "hush", "a b")
NOW_S = 1_700_000_000


def make_token(expires_s: float, **claims: Any) -> str:
    parts = ({"alg": "RS256"}, {"sub": "broker", "iat": NOW_S, "exp": expires_s, **claims})
    header, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return f"{header}.{body}.c2lnbmF0dXJl"


def never() -> str:
    raise AssertionError("no nonce is needed")


class Provider:
    """An identity provider that answers as a test says, and the login of a broker with its tokens."""

    def __init__(self, settings: BearerSettings | None = None) -> None:
        self.clock = Clock()
        self.clock.advance(NOW_S)
        self.requests: list[Deferred[tuple[int, bytes]]] = []
        settings = settings or BearerSettings(ENDPOINT, backoff_s=1, max_backoff_s=5)
        self.login = BearerLogin(settings, lambda _: self._post, self.clock, Random(1))
        self.outcome: Any = None

    def _post(self) -> Deferred[tuple[int, bytes]]:
        self.requests.append(Deferred())
        return self.requests[-1]

    def begin(self) -> None:
        self.login.begin().addBoth(self._note)

    def _note(self, outcome: Any) -> None:
        self.outcome = outcome

    def issue(self, lifetime_s: float) -> str:
        token = make_token(self.clock.seconds() + lifetime_s)
        self.answer(200, json.dumps({"access_token": token}))
        return token

    def answer(self, status: int, body: str) -> None:
        self.requests.pop(0).callback((status, body.encode()))

    def sent_token(self) -> str:
        return self.login.start(never).begin().decode().split("auth=Bearer ")[1].split("\x01")[0]


def test_a_token_is_renewed_before_it_expires() -> None:
    provider = Provider()
    with pytest.raises(SaslError, match="there is no valid bearer token: none was requested yet"):
        provider.login.start(never)
    provider.begin()
    first = provider.issue(1000)
    assert (provider.outcome, provider.sent_token()) == (None, first)
    provider.clock.advance(699)
    assert provider.requests == []
    provider.clock.advance(2)
    assert provider.sent_token() == first
    second = provider.issue(1000)
    assert provider.sent_token() == second != first
    provider.login.stop()
    assert provider.clock.getDelayedCalls() == []


def test_a_provider_that_fails_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    provider = Provider()
    provider.begin()
    provider.answer(503, "busy")
    provider.clock.advance(0.9)
    assert provider.requests == []
    provider.clock.advance(0.1)
    provider.requests.pop(0).errback(OSError("refused"))
    provider.clock.advance(2)
    provider.issue(100)
    assert provider.outcome is None
    provider.clock.advance(86)
    for pause_s in (1, 2, 2, 0):
        provider.answer(500, "{}")
        provider.clock.advance(pause_s)
    assert caplog.messages == [
        "Cannot renew the bearer token of this broker, trying again: https://issuer/token answers with the status 500"
    ]
    provider.clock.advance(9)
    with pytest.raises(SaslError, match=r"there is no valid bearer token: .* answers with the status 500"):
        provider.login.start(never)
    provider.clock.advance(1)
    assert provider.issue(100) == provider.sent_token()
    provider.login.stop()


def test_a_login_that_the_provider_refuses_ends_the_start_and_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    provider = Provider()
    provider.begin()
    provider.answer(401, json.dumps({"error": "invalid_client", "error_description": "hush is wrong\n"}))
    assert provider.outcome.check(TokenRequestError)
    text = provider.outcome.getErrorMessage()
    assert text == "https://issuer/token answers with the status 401 ('invalid_client: (secret) is wrong\\n')"
    assert caplog.messages == [] and provider.clock.getDelayedCalls() == []


def test_a_start_waits_no_longer_than_kafkas() -> None:
    provider = Provider()
    provider.begin()
    for pause_s in (1, 2, 2, 0):
        assert provider.outcome is None
        provider.answer(503, "")
        provider.clock.advance(pause_s)
    assert provider.outcome.check(TokenRequestError)


def test_a_stop_ends_a_request_under_way(caplog: pytest.LogCaptureFixture) -> None:
    provider = Provider()
    provider.begin()
    provider.login.stop()
    assert provider.clock.getDelayedCalls() == []
    provider = Provider()
    provider.begin()
    provider.issue(10)
    provider.clock.advance(9)
    provider.login.stop()
    assert provider.clock.getDelayedCalls() == [] and caplog.messages == []


def test_the_request_of_a_token() -> None:
    headers = ENDPOINT.build_headers()
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"me:1:hush"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert ENDPOINT.build_body() == b"grant_type=client_credentials&scope=a+b"
    assert TokenEndpoint("u", "i", "s").build_body() == b"grant_type=client_credentials"
    assert "hush" not in repr(ENDPOINT)


@pytest.mark.parametrize(
    ("status", "body", "is_final"),
    [(200, b"{}", True), (200, b"[", True), (201, b'{"access_token":1}', True), (404, b"", True), (429, b"", False)],
)
def test_answers_without_a_token(status: int, body: bytes, is_final: bool) -> None:
    with pytest.raises(TokenRequestError) as problem:
        ENDPOINT.read_answer(status, body)
    assert problem.value.is_final == is_final


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b",
        "a.!.c",
        make_token(9) + "\x01auth=Bearer x",
        make_token(9) + "\ud800",
        make_token(9, sub=""),
        make_token(9, sub=3),
        make_token(-1),
        make_token(9, exp="9"),
        make_token(9, iat="x"),
    ],
)
def test_a_token_that_is_none(token: str) -> None:
    with pytest.raises(TokenRequestError) as problem:
        parse_client_token(token, "sub")
    assert not token or token not in str(problem.value)


def test_the_claims_of_a_token() -> None:
    text = make_token(NOW_S + 60, name=" b ")
    token = parse_client_token(f" {text}\n", "name")
    assert token == ClientToken(text, "b", NOW_S * 1000, NOW_S * 1000 + 60_000)
    assert text not in repr(token)


@pytest.mark.parametrize(
    ("lifetime_s", "age_s", "expected_s"),
    [
        (3600, 0, 2880),  # the share of the lifetime since its issue
        (3600, 1800, 1080),
        (3600, 2900, 60),  # not before the least period has passed
        (1000, 0, 700),  # not later than the buffer before its end
        (300, 0, 240),  # too short for the buffers: the share of what is left
        (300, 200, 80),
        (10, 20, -8),  # expired
    ],
)
def test_when_a_token_is_renewed(lifetime_s: int, age_s: int, expected_s: int) -> None:
    now = NOW_S * 1000
    issued = now - age_s * 1000
    token = ClientToken("", "", issued, issued + lifetime_s * 1000)
    assert find_renewal_ms(token, now, RefreshRules(), 0.0) == now + expected_s * 1000


def test_jitter_and_a_token_without_a_time_of_issue() -> None:
    token = ClientToken("", "", None, 10_000_000)
    assert find_renewal_ms(token, 0, RefreshRules(), 1.0) == 8_500_000


def test_a_token_in_a_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "token"
    provider = Provider(BearerSettings(TokenFile(str(path)), backoff_s=1, max_backoff_s=1))
    path.write_text(make_token(NOW_S + 100) + "\n")
    provider.begin()
    assert provider.sent_token() == path.read_text().strip()
    path.write_text(make_token(NOW_S + 1000))
    provider.clock.advance(86)
    assert provider.sent_token() == path.read_text()
    path.write_bytes(b"\xff")
    for _ in range(3):
        provider.clock.advance(305)
    with pytest.raises(SaslError, match="holds no token"):
        provider.login.start(never)
    provider.login.stop()


def test_a_file_that_nobody_renews_is_read_at_most_once_a_second(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(make_token(NOW_S + 1))
    provider = Provider(BearerSettings(TokenFile(str(path))))
    provider.begin()
    renewals: Any = provider.clock.getDelayedCalls()
    assert [renewal.getTime() for renewal in renewals] == [NOW_S + 1]
    provider.login.stop()


def test_a_missing_file_fails_the_start(tmp_path: Path) -> None:
    provider = Provider(BearerSettings(TokenFile(str(tmp_path / "none")), max_backoff_s=0))
    provider.begin()
    assert provider.outcome.getErrorMessage() == f"{tmp_path}/none cannot be read: there is no such file or folder"


def exchange(provider: Provider, check: Callable[[str], BearerToken]) -> OAuthBearerServer:
    client, server = provider.login.start(never), OAuthBearerServer(check)
    answer = client.evaluate(server.evaluate(client.begin()))
    while answer is not None:
        answer = client.evaluate(server.evaluate(answer))
    return server


def test_both_sides_with_unsecured_tokens() -> None:
    settings = BearerSettings(UnsecuredClaims({"sub": "broker"}, 60), extensions={"traceId": "1"})
    provider = Provider(settings)
    provider.begin()
    rules = UnsecuredRules()
    server = exchange(
        provider, lambda token: check_unsecured_token(token, rules, lambda: int(provider.clock.seconds() * 1000))
    )
    assert server.principal == Principal("User", "broker")
    assert server.expires_at_ms == (NOW_S + 60) * 1000
    provider.login.stop()


def test_an_exchange_with_a_broker_that_refuses_without_end_ends() -> None:
    client = BearerClient("token", {})
    assert client.evaluate(b"{}") == b"\x01"
    with pytest.raises(SaslError, match="refuses the bearer token twice"):
        client.evaluate(b"{}")


def test_a_refused_token_is_confirmed_so_that_the_broker_says_why() -> None:
    def refuse(_: str) -> BearerToken:
        raise TokenError("it is bad")

    provider = Provider(BearerSettings(UnsecuredClaims({"sub": "broker"})))
    provider.begin()
    with pytest.raises(SaslError, match="it is bad"):
        exchange(provider, refuse)
    provider.login.stop()
