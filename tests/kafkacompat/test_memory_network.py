"""What the network in memory does that no test could do with sockets: delays, cuts, silence, and dead processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost, DNSLookupError, TimeoutError
from twisted.internet.task import Clock

from tests.fakes.memory_network import MemoryNetwork
from tests.fakes.memory_transport import PACKET_BYTES, WINDOW_BYTES
from tests.kafkacompat.server.regions import is_closed, log_file, make_region
from tests.kafkacompat.server.test_transport import cold_region
from tests.kafkacompat.test_network import End, Ends

PORT = 9092
TIMEOUT_S = 5.0


class World:
    """A host that connects, and one that listens."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.clock = Clock()
        self.network = MemoryNetwork(self.clock, delay_s)
        self.factory = Ends()
        self.network.at("b").listen(PORT, self.factory, 10, "b")
        self.client = End()
        self.outcome: list[Any] = []

    def connect(self, host: str = "b") -> None:
        self.network.at("a").connect(host, PORT, self.client, TIMEOUT_S).addBoth(self.outcome.append)

    def connected(self) -> End:
        self.connect()
        self.turn()
        assert self.outcome == [None] and self.client.is_made
        return self.server

    @property
    def server(self) -> End:
        return self.factory.accepted[0]

    def turn(self) -> None:
        for _ in range(200):
            self.clock.advance(0)


def test_nothing_arrives_inside_the_call_that_sends_it() -> None:
    world = World()
    world.connect()
    assert world.factory.accepted == [] and not world.client.is_made
    world.turn()
    world.client.transport.write(b"to b")
    world.server.transport.loseConnection()
    assert world.server.received == b"" and world.server.lost is None and world.client.lost is None
    world.client.transport.pauseProducing()
    world.client.transport.resumeProducing()
    world.turn()
    assert world.client.lost is not None and world.server.lost is not None


def test_each_direction_has_its_delay() -> None:
    world = World(delay_s=1)
    world.network.set_delay("b", "a", 3)
    world.connect()
    world.clock.pump([0.9, 0.1])
    assert len(world.factory.accepted) == 1 and not world.client.is_made
    world.clock.pump([2.9, 0.1])
    assert world.client.is_made
    world.client.transport.write(b"1")
    world.server.transport.write(b"2")
    world.clock.advance(1)
    assert (world.server.received, world.client.received) == (b"1", b"")
    world.clock.advance(2)
    assert world.client.received == b"2"


def test_a_shorter_delay_overtakes_nothing() -> None:
    world = World(delay_s=1)
    world.connect()
    world.clock.pump([1, 1])
    world.client.transport.write(b"first")
    world.network.set_delay("a", "b", 0)
    world.client.transport.write(b"second")
    world.clock.advance(0.5)
    assert world.server.received == b""
    world.clock.pump([0.5, 0])
    assert world.server.received == b"firstsecond"


def test_a_cut_is_silence_until_it_heals() -> None:
    world = World()
    server = world.connected()
    world.network.cut("b", "a")
    world.client.transport.write(b"1")
    server.transport.write(b"2")
    world.clock.advance(1000)
    assert (server.received, world.client.received) == (b"", b"")
    assert server.lost is None and world.client.lost is None
    world.client.transport.write(b"3")
    world.network.heal("a", "b")
    world.turn()
    assert (server.received, world.client.received) == (b"13", b"2")


def test_a_cut_drops_bytes_on_the_way() -> None:
    world = World(delay_s=1)
    world.connect()
    world.clock.pump([1, 1])
    world.client.transport.write(b"1")
    world.clock.advance(0.5)
    world.network.cut("a", "b")
    world.clock.advance(10)
    assert world.server.received == b""
    world.network.heal("a", "b")
    world.client.transport.write(b"2")
    world.clock.pump([1, 1])
    assert world.server.received == b"12"


def test_nothing_answers_across_a_cut_and_the_attempt_times_out() -> None:
    world = World()
    world.network.cut("a", "b")
    world.connect()
    world.clock.advance(TIMEOUT_S - 0.1)
    assert world.outcome == []
    world.clock.advance(0.1)
    assert world.outcome[0].check(TimeoutError)
    # The request is sent again after the cut, but nobody wants the connection any more.
    world.network.heal("a", "b")
    world.turn()
    assert not world.client.is_made and world.server.lost is not None


def test_a_vanished_peer_is_noticed_only_by_sending() -> None:
    world = World()
    server = world.connected()
    world.network.cut("a", "b")
    server.transport.abortConnection()
    world.turn()
    world.network.heal("a", "b")
    world.turn()
    assert server.lost is not None and world.client.lost is None
    world.client.transport.write(b"hello?")
    world.turn()
    assert world.client.lost is not None and world.client.lost.check(ConnectionLost)


def test_a_close_during_a_cut_arrives_after_it() -> None:
    world = World()
    server = world.connected()
    world.network.cut("a", "b")
    server.transport.write(b"bye")
    server.transport.loseConnection()
    world.turn()
    assert world.client.lost is None
    world.network.heal("a", "b")
    world.turn()
    assert world.client.received == b"bye" and world.client.lost is not None


def test_a_killed_process_receives_nothing_and_its_peers_are_reset() -> None:
    world = World()
    server = world.connected()
    world.client.transport.write(b"lost")
    world.network.at("b").kill()
    world.turn()
    assert server.received == b"" and server.lost is None
    assert world.client.lost is not None
    world.outcome.clear()
    world.connect()
    world.turn()
    assert "refused" in str(world.outcome[0].value)
    # Another process may take its place.
    world.network.at("b").listen(PORT, world.factory, 10, "")


def test_an_unknown_host_is_not_found() -> None:
    world = World()
    world.connect("nowhere")
    world.turn()
    assert world.outcome[0].check(DNSLookupError)
    assert world.clock.getDelayedCalls() == []


def test_each_host_has_a_loopback_of_its_own() -> None:
    world = World()
    world.connect("localhost")
    world.turn()
    assert not world.client.is_made
    other = End()
    world.network.at("b").connect("localhost", PORT, other, TIMEOUT_S)
    world.turn()
    assert other.is_made and other.transport.getPeer().host == "b"


def test_a_sender_keeps_bytes_beyond_the_window() -> None:
    world = World()
    server = world.connected()
    drained: list[int] = []
    server.transport.on_drained = lambda: drained.append(server.transport.queued_bytes)
    world.client.transport.pauseProducing()
    server.transport.send_parts([b"x" * (WINDOW_BYTES + 1), b"y" * PACKET_BYTES])
    world.turn()
    assert server.transport.queued_bytes == PACKET_BYTES + 1 and drained == []
    world.client.transport.resumeProducing()
    world.turn()
    assert world.client.received == b"x" * (WINDOW_BYTES + 1) + b"y" * PACKET_BYTES
    assert drained[-1] == 0


def test_an_end_that_is_closed_before_everything_was_read_resets_the_other() -> None:
    world = World()
    server = world.connected()
    server.transport.pauseProducing()
    world.client.transport.write(b"x" * (2 * WINDOW_BYTES))
    world.turn()
    server.transport.loseConnection()
    world.turn()
    assert server.lost is not None and world.client.lost is not None


def test_a_cold_region_is_read_ahead_before_it_is_sent(tmp_path: Path) -> None:
    world = World()
    server = world.connected()
    file = log_file(tmp_path / "log", b"0123456789")
    asked: list[tuple[int, int]] = []
    ahead: Deferred[None] = Deferred()

    def read_ahead(_: object, offset: int, size_bytes: int) -> Deferred[None]:
        asked.append((offset, size_bytes))
        return ahead

    server.transport.read_ahead = read_ahead
    server.transport.send_parts([cold_region(file, 4), b"next"])
    world.turn()
    assert asked == [(0, 4)] and world.client.received == b""
    ahead.callback(None)
    world.turn()
    assert world.client.received == b"0123next"
    assert is_closed(file)


def test_a_region_whose_file_was_cut_ends_the_connection(tmp_path: Path) -> None:
    world = World()
    server = world.connected()
    file = log_file(tmp_path / "log", b"0123456789")
    server.transport.send_parts([make_region(file, 8, 4), b"next"])
    world.turn()
    assert server.lost is not None and world.client.lost is not None
    assert b"next" not in world.client.received
    assert is_closed(file)


def test_a_killed_process_gets_no_connection_that_it_was_waiting_for() -> None:
    world = World()
    world.network.cut("a", "b")
    world.connect()
    world.turn()
    world.network.at("a").kill()
    world.network.heal("a", "b")
    world.clock.advance(TIMEOUT_S)
    world.turn()
    assert world.outcome == [] and not world.client.is_made
    assert world.server.lost is not None
