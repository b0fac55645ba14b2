"""Authentications, handshakes and refused connections, from a client to the metric."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.monitoring.collectors.connections import PREFIX, ConnectionCollector
from kafkacompat.quotas.connection_rates import ADMITTED, ConnectionAdmission
from kafkacompat.server.connection import ListenerServices
from kafkacompat.server.connection_limits import Objection
from kafkacompat.server.listener import KafkaFactory
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest
from tests.fakes.certificates import shared_member
from tests.kafkacompat.server.test_sasl_connection import WRONG
from tests.kafkacompat.server.test_sasl_connection import World as SaslWorld
from tests.kafkacompat.server.tls_world import PlainClient, TlsWorld
from tests.kafkacompat.server.world import World

Key = tuple[str, tuple[str, ...]]


class Scraper:
    """Collects the metrics of one listener; `scrape` returns values by name, and the labels that tell the samples apart."""

    def __init__(self, shared: ListenerServices) -> None:
        server: Any = SimpleNamespace(
            traffic={shared.listener_name: shared.traffic}, connections=set(), budget=shared.budget
        )
        observed: Any = SimpleNamespace(server=server, clock=shared.clock)
        self.collector = ConnectionCollector(observed, 10)

    def scrape(self) -> dict[Key, float]:
        metrics = [metric for metric in self.collector.collect() if metric is not None]
        return {
            (sample.name.removeprefix(PREFIX), tuple(sample.labels[own] for own in ("mechanism", "limit") if own in sample.labels)):
            sample.value
            for metric in metrics
            for sample in metric.samples
        }  # fmt: skip


def scrape(connection: Any) -> dict[Key, float]:
    return Scraper(connection._shared).scrape()


def test_authentications_count_by_mechanism() -> None:
    world = SaslWorld()
    world.log_in()
    samples = scrape(world.connection)
    assert samples["successful_authentication_total", ("PLAIN",)] == 1
    assert not [name for name, _ in samples if name.startswith("failed_")]
    world = SaslWorld()
    world.log_in(WRONG)
    world.clock.advance(1)
    assert scrape(world.connection)["failed_authentication_total", ("PLAIN",)] == 1


def test_a_client_that_does_not_authenticate_itself_has_failed() -> None:
    """The name of a mechanism that is not enabled, which the client chooses, makes no series."""
    for requests in ([SaslHandshakeRequest(mechanism="X" * 99)], [HeartbeatRequest()]):
        world = SaslWorld()
        for request in requests:
            world.send(request, 1)
        samples = scrape(world.connection)
        assert samples["failed_authentication_total", ("(other)",)] == 1
        assert not [name for name, _ in samples if name.startswith("successful_")]


def test_reauthentications_and_expired_sessions_count() -> None:
    world = SaslWorld(max_session_ms=2000)
    world.log_in()
    world.answer()
    world.clock.advance(1.5)
    world.log_in()
    world.answer()
    samples = scrape(world.connection)
    assert samples["successful_authentication_total", ("PLAIN",)] == 1
    assert samples["successful_reauthentication_total", ("PLAIN",)] == 1
    assert samples["expired_connections_killed_count", ()] == 0
    world.clock.advance(1.5)
    world.log_in(WRONG)
    world.clock.advance(1)
    assert scrape(world.connection)["failed_reauthentication_total", ("PLAIN",)] == 1
    world = SaslWorld(max_session_ms=2000)
    world.log_in()
    world.answer()
    world.clock.advance(3)
    assert not world.is_served
    samples = scrape(world.connection)
    assert samples["expired_connections_killed_count", ()] == 1
    assert ("failed_reauthentication_total", ("PLAIN",)) not in samples


def test_handshakes_count_as_authentications_of_a_listener_without_sasl() -> None:
    world = TlsWorld()
    world.connect_tls(shared_member("alice"))
    connection = world.connection
    failing: Any = world.connect(PlainClient())
    failing.transport.write(b"GET / HTTP/1.1\r\n\r\n")
    world.turn()
    samples = scrape(connection)
    assert samples["successful_authentication_total", ("SSL",)] == 1
    assert samples["failed_authentication_total", ("SSL",)] == 1


def test_what_fails_after_the_handshake_is_no_failed_authentication() -> None:
    world = TlsWorld()
    client = world.connect_tls()
    connection = world.connection
    client.transport.write(b"\x17\x03\x03\x00\x20" + b"\0" * 32)
    world.turn()
    assert world.connections == set()
    assert ("failed_authentication_total", ("SSL",)) not in scrape(connection)


def test_refused_connections_count_by_limit() -> None:
    world = World(Clock())
    shared = world.connection._shared
    objections: list[Objection | None] = [
        Objection("max.connections", "there are too many"),
        Objection("max.connections.per.ip", "there are too many"),
        None,
        None,
        None,
    ]
    admissions = [ConnectionAdmission(400, closes=True), ConnectionAdmission(100), ADMITTED]
    factory = KafkaFactory(shared, lambda *_: Deferred(), lambda *_: objections.pop(0), lambda *_: admissions.pop(0))
    scraper = Scraper(shared)
    address: Any = IPv4Address("TCP", "192.0.2.1", 5555)
    assert scraper.scrape()["ip_connection_accept_throttle_time", ()] == 0
    for _ in range(5):
        factory.buildProtocol(address)
    samples = scraper.scrape()
    for limit in ("max.connections", "max.connections.per.ip", "connection_creation_rate"):
        assert samples["kafkacompat_connections_turned_away_total", (limit,)] == 1
    assert samples["ip_connection_accept_throttle_time", ()] == 400
    assert samples["connection_accept_throttle_time", ()] == 100
