"""What the broker expects of a network, of the operating system's and of the one in memory."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.error import (
    CannotListenError,
    ConnectionDone,
    ConnectionRefusedError,
    DNSLookupError,
)
from twisted.internet.protocol import Protocol, ServerFactory
from twisted.internet.selectreactor import SelectReactor
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.network import Network, ReactorNetwork
from kafkacompat.server.transport import ZeroCopyConnector, make_zero_copy_port
from tests.fakes.memory_network import MemoryNetwork
from tests.kafkacompat.server.regions import is_closed, log_file, make_region

HOST = "127.0.0.1"
TIMEOUT_S = 10.0
TURNS = 5000
TURN_S = 0.005
LARGE = 16_000_000  # more than the two ends of a connection hold


class End(Protocol):
    """One end of a connection."""

    transport: Any

    def __init__(self) -> None:
        self.received = b""
        self.is_made = False
        self.lost: Failure | None = None

    def connectionMade(self) -> None:
        self.is_made = True

    def dataReceived(self, data: bytes) -> None:
        self.received += data

    def connectionLost(self, reason: Failure = Failure(ConnectionError())) -> None:  # noqa: B008
        self.lost = reason


class Ends(ServerFactory):
    """The accepted ends; with ``rejects`` there are none."""

    noisy = False

    def __init__(self) -> None:
        self.accepted: list[End] = []
        self.rejects = False

    def buildProtocol(self, addr: object) -> End | None:
        if self.rejects:
            return None
        self.accepted.append(End())
        return self.accepted[-1]


class World:
    """A network, and how to let its time pass."""

    def __init__(self, network: Network, turn: Callable[[], object]) -> None:
        self.network = network
        self.factory = Ends()
        self._turn = turn

    def until(self, condition: Callable[[], Any]) -> None:
        for _ in range(TURNS):
            if condition():
                return
            self._turn()
        raise AssertionError("it does not happen")

    def turns(self, count: int) -> None:
        for _ in range(count):
            self._turn()

    def listen(self, port: int = 0) -> Any:
        return self.network.listen(port, self.factory, 10, HOST)

    def attempt(self, port: int, host: str = HOST) -> tuple[End, list[Any]]:
        """Begin to connect; the list gets the outcome."""
        end, outcome = End(), list[Any]()
        self.network.connect(host, port, end, TIMEOUT_S).addBoth(outcome.append)
        return end, outcome

    def connected(self) -> tuple[End, End]:
        """The two ends of a connection: the connecting one, the accepted one."""
        end, outcome = self.attempt(self.listen().getHost().port)
        self.until(lambda: end.is_made and self.factory.accepted)
        assert outcome == [None]
        return end, self.factory.accepted[0]


def make_memory_world() -> World:
    clock = Clock()
    return World(MemoryNetwork(clock).at("here"), lambda: clock.advance(TURN_S))


@pytest.fixture
def reactor() -> Iterator[Any]:
    made: Any = SelectReactor()
    yield made
    for reader in made.removeAll():
        reader.connectionLost(Failure(ConnectionDone()))
    made.waker.connectionLost(Failure(ConnectionDone()))


@pytest.fixture(params=["memory", "sockets"])
def world(request: pytest.FixtureRequest) -> World:
    return make_memory_world() if request.param == "memory" else make_socket_world(request.getfixturevalue("reactor"))


def make_socket_world(reactor: Any) -> World:
    network = ReactorNetwork(reactor, make_zero_copy_port(), ZeroCopyConnector)
    return World(network, lambda: reactor.iterate(TURN_S))


def test_parts_arrive_in_order_in_both_directions(world: World, tmp_path: Path) -> None:
    file = log_file(tmp_path / "log", b"0123456789")
    client, server = world.connected()
    client.transport.send_parts([b"a", bytearray(b"bc"), memoryview(b"d")])
    server.transport.send_parts([b"head", make_region(file, 2, 5), b"tail"])
    server.transport.send_parts([b"more"])
    world.until(lambda: len(server.received) == 4 and len(client.received) == 17)
    assert (server.received, client.received) == (b"abcd", b"head23456tailmore")
    assert is_closed(file)


def test_each_end_knows_both_addresses(world: World) -> None:
    client, server = world.connected()
    own_address, peer_address = client.transport.getHost(), client.transport.getPeer()
    assert (server.transport.getPeer().host, server.transport.getPeer().port) == (own_address.host, own_address.port)
    assert (server.transport.getHost().host, server.transport.getHost().port) == (peer_address.host, peer_address.port)


def test_bytes_sent_before_the_close_arrive(world: World) -> None:
    client, server = world.connected()
    server.transport.send_parts([b"x" * LARGE])
    server.transport.loseConnection()
    world.until(lambda: client.lost and server.lost)
    assert len(client.received) == LARGE
    assert client.lost is not None and client.lost.check(ConnectionDone)
    assert server.lost is not None and server.lost.check(ConnectionDone)
    assert not client.transport.connected and not server.transport.connected


def test_an_aborted_connection_ends_on_both_sides(world: World, tmp_path: Path) -> None:
    file = log_file(tmp_path / "log", b"0123456789")
    client, server = world.connected()
    client.transport.pauseProducing()
    server.transport.send_parts([b"x" * LARGE, make_region(file, 0, 3)])
    server.transport.abortConnection()
    assert server.lost is None
    world.until(lambda: server.lost)
    client.transport.resumeProducing()
    world.until(lambda: client.lost)
    server.transport.send_parts([make_region(file, 0, 3)])
    assert is_closed(file)


def test_a_paused_end_receives_nothing_and_holds_up_the_other(world: World) -> None:
    client, server = world.connected()
    client.transport.pauseProducing()
    server.transport.send_parts([b"x" * LARGE])
    world.turns(20)
    assert client.received == b""
    assert 0 < server.transport.queued_bytes < LARGE
    assert server.transport.queued_bytes + server.transport.sent_bytes == LARGE
    client.transport.resumeProducing()
    world.until(lambda: len(client.received) == LARGE)
    assert server.transport.queued_bytes == 0


def test_a_port_without_a_listener_refuses_connections(world: World) -> None:
    listening = world.listen()
    port = listening.getHost().port
    stopped: list[Any] = []
    listening.stopListening().addBoth(stopped.append)
    world.until(lambda: stopped)
    end, outcome = world.attempt(port)
    world.until(lambda: outcome)
    assert outcome[0].check(ConnectionRefusedError) and not end.is_made
    # The address is free again.
    assert world.listen(port).getHost().port == port


def test_a_connection_outlives_its_port(world: World) -> None:
    listening = world.listen()
    client, _ = world.attempt(listening.getHost().port)
    world.until(lambda: client.is_made and world.factory.accepted)
    assert listening.connected
    listening.stopListening()
    world.turns(3)
    assert not listening.connected
    client.transport.send_parts([b"still here"])
    world.until(lambda: world.factory.accepted[0].received == b"still here")


def test_an_address_can_be_bound_once(world: World) -> None:
    port = world.listen().getHost().port
    with pytest.raises(CannotListenError):
        world.listen(port)
    with pytest.raises(CannotListenError):
        world.network.listen(0, world.factory, 10, "192.0.2.1")


def test_a_rejected_client_is_closed(world: World) -> None:
    world.factory.rejects = True
    end, _ = world.attempt(world.listen().getHost().port)
    world.until(lambda: end.lost)


def test_an_attempt_can_be_given_up(world: World) -> None:
    port, end = world.listen().getHost().port, End()
    attempt = world.network.connect(HOST, port, end, TIMEOUT_S)
    attempt.addErrback(lambda _: None)
    attempt.cancel()
    world.turns(10)
    assert not end.is_made


def test_no_end_of_a_connection_waits_to_fill_its_packets(reactor: Any) -> None:
    for end in make_socket_world(reactor).connected():
        assert end.transport.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


class Resolver:
    """Knows the addresses of one name."""

    def __init__(self, addresses: dict[str, list[str]]) -> None:
        self._addresses = addresses

    def resolveHostName(self, receiver: Any, name: str, *_: object) -> object:
        receiver.resolutionBegan(self)
        for address in self._addresses.get(name, ()):
            receiver.addressResolved(IPv4Address("TCP", address, 0))
        receiver.resolutionComplete()
        return self


def test_the_addresses_of_a_name_are_tried_in_turn(reactor: Any) -> None:
    world = make_socket_world(reactor)
    reactor.installNameResolver(Resolver({"good": ["127.0.0.2", HOST], "bad": ["127.0.0.2", "127.0.0.3"]}))
    port = world.listen().getHost().port
    end, _ = world.attempt(port, "good")
    world.until(lambda: end.is_made)
    assert end.transport.getPeer().host == HOST
    for name, problem in (("bad", ConnectionRefusedError), ("unknown", DNSLookupError)):
        end, outcome = world.attempt(port, name)
        world.until(lambda outcome=outcome: outcome)  # type: ignore[misc]
        assert outcome[0].check(problem) and not end.is_made


def test_an_attempt_by_name_can_be_given_up(reactor: Any) -> None:
    world, end = make_socket_world(reactor), End()
    reactor.installNameResolver(Resolver({"good": [HOST, HOST]}))
    attempt: Deferred[Any] = world.network.connect("good", world.listen().getHost().port, end, TIMEOUT_S)
    attempt.addErrback(lambda _: None)
    attempt.cancel()
    world.turns(10)
    assert not end.is_made
