"""Connections to other brokers over TLS, complete once the handshake is."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionRefusedError
from twisted.python.failure import Failure

from kafkacompat.server.tls_network import TlsNetwork
from kafkacompat.server.tls_transport import HANDSHAKE_TIMEOUT_S, TlsFailedError
from tests.fakes.certificates import Authority, shared_authority, shared_member
from tests.kafkacompat.server.tls_world import PORT, PlainClient, TlsWorld, make_properties, open_listener
from tests.kafkacompat.server.world import make_request


class World(TlsWorld):
    """A broker, "broker-2", that connects to the listener of another."""

    def __init__(self, *, client: dict[str, str] | None = None, **changes: str) -> None:
        super().__init__(**changes)
        properties = client or make_properties(shared_member("broker-2"))
        self.tls_network = TlsNetwork(self.network.at("broker-2"), open_listener(properties), self.clock)
        self.client = PlainClient()
        self.outcome: list[Any] = []

    def begin(self, host: str = "broker-1", port: int = PORT) -> Deferred[None]:
        connecting = self.tls_network.connect(host, port, self.client, 10)
        connecting.addBoth(self.outcome.append)
        self.turn()
        return connecting

    @property
    def failure(self) -> BaseException:
        (failure,) = self.outcome
        assert isinstance(failure, Failure)
        assert failure.value is not None
        return failure.value


def test_a_connection_is_complete_after_the_handshake() -> None:
    world = World(ssl_client_auth="required")
    world.begin()
    assert world.outcome == [None]
    transport: Any = world.client.transport
    transport.send_parts([make_request(1)])
    world.turn()
    assert len(world.client.received) == 10
    assert str(world.connection.principal) == "User:CN=broker-2"


def test_a_certificate_of_an_unknown_authority_fails_the_attempt() -> None:
    stranger = {**make_properties(shared_member("broker-2")), "ssl.truststore.certificates": Authority("other").pem}
    world = World(client=stranger)
    world.begin()
    assert isinstance(world.failure, TlsFailedError)
    assert "the certificate 'CN=ca' is not accepted: its root authority is not trusted" in str(world.failure)
    (line,) = world.complaints
    assert "the peer refuses with the alert unknown ca" in line


def test_a_certificate_for_another_host_fails_the_attempt() -> None:
    world = World()
    world.tls.credentials = open_listener(
        make_properties(shared_authority().issue("broker-1", ["elsewhere"]))
    ).credentials
    world.begin()
    assert "the certificate 'CN=broker-1' is not for the host 'broker-1'" in str(world.failure)
    assert world.connections == set()


def test_a_broker_that_refuses_the_certificate_says_so() -> None:
    """In TLS 1.3 the client's handshake is complete before the server has seen its certificate."""
    world = World(client=make_properties(Authority("other").issue("broker-2")), ssl_client_auth="required")
    world.begin()
    assert world.outcome == [None]
    ending = world.client.ending
    assert ending is not None
    assert "the peer refuses with the alert unknown ca" in str(ending.value)


def test_a_listener_without_tls_fails_the_attempt() -> None:
    world = World()

    class Plain(PlainClient):
        def connectionMade(self) -> None:
            self.transport.write(b"\0\0\0\x0ahello")

    factory: Any = type("Factory", (), {"buildProtocol": lambda self, address: Plain()})()
    world.network.at("broker-1").listen(9092, factory, 1, "broker-1")
    world.begin(port=9092)
    assert "the peer does not send TLS: set its security.protocol" in str(world.failure)


def test_a_silent_listener_fails_the_attempt_after_a_time() -> None:
    world = World()
    factory: Any = type("Factory", (), {"buildProtocol": lambda self, address: PlainClient()})()
    world.network.at("broker-1").listen(9092, factory, 1, "broker-1")
    world.begin(port=9092)
    assert world.outcome == []
    world.turn(HANDSHAKE_TIMEOUT_S + 1)
    assert "the TLS handshake has taken more than 30 s" in str(world.failure)


def test_a_listener_that_closes_fails_the_attempt() -> None:
    world = World()
    factory: Any = type("Factory", (), {"buildProtocol": lambda self, address: None})()
    world.network.at("broker-1").listen(9092, factory, 1, "broker-1")
    world.begin(port=9092)
    assert str(world.failure) == "the broker closed the connection during the TLS handshake"


def test_a_refused_connection_fails_as_without_tls() -> None:
    world = World()
    world.begin(port=1)
    assert isinstance(world.failure, ConnectionRefusedError)


@pytest.mark.parametrize("seconds", [0, 1.5, 2.5])
def test_a_cancelled_attempt_leaves_nothing(seconds: float) -> None:
    """After 1.5 s the connection is on its way back, after 2.5 s the handshake is under way."""
    world = World()
    for source, target in (("broker-1", "broker-2"), ("broker-2", "broker-1")):
        world.network.set_delay(source, target, 1)
    connecting = world.tls_network.connect("broker-1", PORT, world.client, 10)
    connecting.addBoth(world.outcome.append)
    world.turn(seconds)
    connecting.cancel()
    world.turn(5)
    assert isinstance(world.failure, CancelledError)
    assert world.connections == set()
    assert world.client.transport is None
    assert world.clock.getDelayedCalls() == []
