"""How much the log is told about one peer, and whom a sweep closes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred

from kafkacompat.server.connection_limits import Objection
from kafkacompat.server.listener import KafkaFactory, KafkaServer
from tests.fakes.memory_network import MemoryNetwork
from tests.kafkacompat.server.world import World


class Swept:
    """A server whose one connection is that of a world."""

    def __init__(self, max_idle_ms: int) -> None:
        self.world = World()
        self.server = KafkaServer(
            self.world.clock,
            self.world.dispatcher,  # type: ignore[arg-type]
            network=MemoryNetwork(self.world.clock).at("broker"),
            max_frame_bytes=1000,
            max_queued_bytes=-1,
            max_idle_ms=max_idle_ms,
            read_ahead=lambda *_: Deferred(),
        )
        self.server.connections.add(self.world.connection)

    def ended(self) -> tuple[bool, bool]:
        """Closed in peace, cut off: after a second without a byte and a sweep before and after."""
        self.server.sweep()
        self.world.clock.advance(1)
        self.server.sweep()
        return self.world.transport.closing, self.world.transport.aborted


def test_idle_connections_are_closed() -> None:
    assert Swept(1000).ended() == (False, False)
    assert Swept(999).ended() == (True, False)


def test_a_negative_idle_time_is_none() -> None:
    assert Swept(-1).ended() == (False, False)


def test_a_client_that_reads_none_of_its_answers_is_cut_off() -> None:
    swept = Swept(999)
    swept.world.transport.stuck_bytes = 10
    assert swept.ended() == (False, True)
    assert "has not read its responses" in swept.world.complaints[0]


def test_a_client_that_waits_for_its_answer_stays() -> None:
    swept = Swept(999)
    swept.world.pending()
    swept.world.receive(1)
    assert swept.ended() == (False, False)


def test_a_client_that_is_turned_away_gets_no_connection() -> None:
    world = World()
    asked: list[tuple[str, str, list[object]]] = []

    def turn_away(listener_name: str, host: str, peers: Collection[object]) -> Objection | None:
        asked.append((listener_name, host, list(peers)))
        return Objection("max.connections", "there are too many") if host == "192.0.2.1" else None

    def client(host: str) -> Any:
        return IPv4Address("TCP", host, 5555)

    shared = world.connection._shared
    factory = KafkaFactory(shared, lambda *_: Deferred(), turn_away)
    assert factory.buildProtocol(client("192.0.2.1")) is None
    assert world.complaints == ["turning away 192.0.2.1: there are too many"]
    assert shared.traffic.turned_away == {"max.connections": 1}
    assert factory.buildProtocol(client("192.0.2.2")) is not None
    assert asked[0] == (shared.listener_name, "192.0.2.1", list(shared.connections))
