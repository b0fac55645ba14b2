"""The state machine of a connection's authentication: which request may come when, sessions, and re-authentication."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkacompat.security.principals import Principal
from kafkacompat.security.sasl.exchange import (
    MAX_REQUESTS,
    AuthenticationFailedError,
    Offer,
    SaslExchange,
    Stage,
    UnexpectedRequestError,
)
from kafkacompat.security.sasl.mechanism import ANY_LOGIN, SaslError, ServerMechanism
from kafkacompat.security.sasl.plain import PlainServer, PlainUsers
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.errors import ErrorCode

METADATA, VERSIONS, HANDSHAKE, AUTHENTICATE = 3, 18, 17, 36
USERS = PlainUsers({"user_alice": "a", "user_bob": "b"})
ALICE, BOB = b"\0alice\0a", b"\0bob\0b"


class TwoSteps:
    """A mechanism of two messages, whose credential ends at a given time."""

    def __init__(self, expires_at_ms: int | None = None) -> None:
        self.principal: Principal | None = None
        self.expires_at_ms = expires_at_ms
        self.scope = ANY_LOGIN
        self._seen = 0

    def evaluate(self, token: bytes) -> bytes:
        if token == b"bad":
            raise SaslError("the secret reason")
        self._seen += 1
        if self._seen == 2:
            self.principal = Principal("User", "carol", by_token=True)
        return b"answer %d" % self._seen


class World:
    def __init__(self, max_session_ms: int = 0, expires_at_ms: int | None = None) -> None:
        self.steady_ms = 1000
        self.now_ms = 50_000
        mechanisms: dict[str, Callable[[], ServerMechanism]] = {
            "PLAIN": lambda: PlainServer(USERS),
            "SCRAM-SHA-256": lambda: TwoSteps(expires_at_ms),
        }
        offer = Offer(mechanisms, dict.fromkeys(mechanisms, max_session_ms))
        self.exchange = SaslExchange(offer, lambda: self.steady_ms, lambda: self.now_ms)

    def versions(self, error_code: int = 0) -> None:
        assert self.exchange.admits(VERSIONS)
        self.exchange.note_versions(error_code)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
        assert self.exchange.admits(HANDSHAKE)
        return self.exchange.choose_mechanism(SaslHandshakeRequest(mechanism=mechanism), version)

    def authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        assert self.exchange.admits(AUTHENTICATE)
        return self.exchange.authenticate(SaslAuthenticateRequest(auth_bytes=token))

    def log_in(self) -> SaslAuthenticateResponse:
        self.handshake()
        return self.authenticate(ALICE)


def test_the_usual_way() -> None:
    world = World()
    world.versions()
    assert world.handshake().mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    assert world.exchange.principal is None
    response = world.authenticate(ALICE)
    assert (response.error_code, response.error_message, response.session_lifetime_ms) == (0, "", 0)
    assert world.exchange.principal == Principal("User", "alice")
    assert not world.exchange.session_is_limited
    assert not world.exchange.admits(METADATA)
    # As in Kafka, the handler answers these with ILLEGAL_SASL_STATE then.
    assert not world.exchange.admits(HANDSHAKE) and not world.exchange.admits(AUTHENTICATE)


def test_several_messages() -> None:
    world = World()
    world.handshake("SCRAM-SHA-256")
    assert world.authenticate(b"1").auth_bytes == b"answer 1"
    assert world.exchange.stage is Stage.TOKEN
    assert world.authenticate(b"2").auth_bytes == b"answer 2"
    assert world.exchange.principal == Principal("User", "carol", by_token=True)


def test_messages_as_bare_frames() -> None:
    world = World()
    world.handshake("SCRAM-SHA-256", version=0)
    assert world.exchange.takes_bare_token
    assert world.exchange.authenticate_bare(b"1") == b"answer 1"
    assert world.exchange.authenticate_bare(b"2") == b"answer 2"
    assert not world.exchange.takes_bare_token and world.exchange.principal is not None


def test_versions_may_be_repeated_after_an_error_only() -> None:
    world = World()
    world.versions(ErrorCode.UNSUPPORTED_VERSION)
    world.versions(ErrorCode.INVALID_REQUEST)
    world.versions()
    with pytest.raises(UnexpectedRequestError, match="expects SaslHandshake"):
        world.exchange.admits(VERSIONS)


@pytest.mark.parametrize("api_key", [0, METADATA, AUTHENTICATE, 58, 20001, -1, 0x6000])
def test_nothing_else_before_the_handshake(api_key: int) -> None:
    """0x60 begins a GSSAPI token of a client of 0.9."""
    with pytest.raises(UnexpectedRequestError, match="expects ApiVersions or SaslHandshake"):
        World().exchange.admits(api_key)


@pytest.mark.parametrize("api_key", [0, METADATA, VERSIONS, HANDSHAKE])
def test_nothing_else_between_handshake_and_authentication(api_key: int) -> None:
    world = World()
    world.handshake()
    with pytest.raises(UnexpectedRequestError, match="expects SaslAuthenticate"):
        world.exchange.admits(api_key)


def test_an_endless_exchange_is_ended() -> None:
    world = World()
    for _ in range(MAX_REQUESTS):
        world.versions(ErrorCode.INVALID_REQUEST)
    with pytest.raises(UnexpectedRequestError, match="without authenticating itself"):
        world.exchange.admits(VERSIONS)


def test_an_unknown_mechanism() -> None:
    world = World()
    with pytest.raises(AuthenticationFailedError) as failed:
        world.handshake("GSSAPI")
    response = failed.value.response
    assert isinstance(response, SaslHandshakeResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    with pytest.raises(UnexpectedRequestError):
        world.exchange.admits(HANDSHAKE)


def test_the_client_learns_no_secret_reason() -> None:
    world = World()
    world.handshake("SCRAM-SHA-256")
    with pytest.raises(AuthenticationFailedError, match="the secret reason") as failed:
        world.authenticate(b"bad")
    response = failed.value.response
    assert isinstance(response, SaslAuthenticateResponse)
    assert (response.error_code, response.auth_bytes) == (ErrorCode.SASL_AUTHENTICATION_FAILED, b"")
    words = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    assert response.error_message == words
    with pytest.raises(UnexpectedRequestError):
        world.exchange.admits(AUTHENTICATE)


def test_a_bare_failure_has_no_response() -> None:
    world = World()
    world.handshake(version=0)
    with pytest.raises(AuthenticationFailedError) as failed:
        world.exchange.authenticate_bare(b"\0alice\0wrong")
    assert failed.value.response is None


def test_the_names_are_in_the_order_of_a_java_hash_set() -> None:
    names = ["SCRAM-SHA-512", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256"]
    offer = Offer(dict.fromkeys(names, lambda: PlainServer(USERS)), {})
    # As Apache Kafka 4.3.1 lists them, see compat_tests/test_sasl.py.
    assert offer.names == ["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"]


# Sessions


@pytest.mark.parametrize(
    ("max_session_ms", "expires_at_ms", "lifetime_ms"),
    [(0, None, 0), (-1, None, 0), (2000, None, 2000), (0, 53_000, 3000), (2000, 53_000, 2000), (4000, 53_000, 3000)],
)
def test_the_length_of_a_session(max_session_ms: int, expires_at_ms: int | None, lifetime_ms: int) -> None:
    world = World(max_session_ms, expires_at_ms)
    world.handshake("SCRAM-SHA-256")
    assert world.authenticate(b"1").session_lifetime_ms == 0
    assert world.authenticate(b"2").session_lifetime_ms == lifetime_ms
    assert world.exchange.session_is_limited == (lifetime_ms > 0)


def test_a_credential_that_has_expired_leaves_no_session() -> None:
    world = World(expires_at_ms=49_000)
    world.handshake("SCRAM-SHA-256")
    world.authenticate(b"1")
    assert world.authenticate(b"2").session_lifetime_ms == 0
    world.steady_ms += 1
    with pytest.raises(UnexpectedRequestError, match="session has ended"):
        world.exchange.admits(METADATA)


def test_a_session_ends_at_the_next_request() -> None:
    world = World(2000)
    world.log_in()
    world.steady_ms += 2000
    assert not world.exchange.admits(METADATA)
    world.steady_ms += 1
    with pytest.raises(UnexpectedRequestError, match="session has ended"):
        world.exchange.admits(METADATA)


def test_reauthentication_prolongs_a_session_even_after_its_end() -> None:
    world = World(2000)
    world.log_in()
    world.steady_ms += 5000
    assert world.log_in().session_lifetime_ms == 2000
    assert not world.exchange.admits(METADATA)


def test_no_ordinary_request_during_reauthentication() -> None:
    world = World(2000)
    world.log_in()
    world.handshake()
    with pytest.raises(UnexpectedRequestError, match="expects SaslAuthenticate"):
        world.exchange.admits(METADATA)


def test_reauthentication_at_most_once_a_second() -> None:
    world = World(10_000)
    world.log_in()
    world.log_in()
    world.steady_ms += 999
    assert not world.exchange.admits(HANDSHAKE)
    world.steady_ms += 1
    world.log_in()


def test_reauthentication_does_not_change_the_user() -> None:
    world = World(2000)
    world.log_in()
    world.handshake()
    with pytest.raises(AuthenticationFailedError) as failed:
        world.authenticate(BOB)
    assert isinstance(failed.value.response, SaslAuthenticateResponse)
    words = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert failed.value.response.error_message == words


def test_reauthentication_does_not_change_the_mechanism() -> None:
    world = World(2000)
    world.log_in()
    assert world.handshake("SCRAM-SHA-256").error_code == 0
    with pytest.raises(AuthenticationFailedError, match="another mechanism") as failed:
        world.authenticate(b"1")
    assert failed.value.response is None


def test_a_failed_reauthentication_says_so() -> None:
    world = World(2000)
    world.handshake("SCRAM-SHA-256")
    for message in (b"1", b"2"):
        world.authenticate(message)
    world.handshake("SCRAM-SHA-256")
    with pytest.raises(AuthenticationFailedError) as failed:
        world.authenticate(b"bad")
    assert isinstance(failed.value.response, SaslAuthenticateResponse)
    assert "failed during re-authentication due to" in (failed.value.response.error_message or "")


def test_reauthentication_has_no_bare_frames() -> None:
    world = World(2000)
    world.log_in()
    with pytest.raises(UnexpectedRequestError, match="SaslHandshake 0"):
        world.handshake(version=0)
