"""Clients that use more than their quotas: answered at once, and then not read for the throttle time (KIP-219)."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.handlers.context import Pending
from kafkacompat.metadata.client_entities import ClientConfig, make_entity
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.quotas.connection_rates import ConnectionAdmission
from kafkacompat.quotas.rates import QuotaWindows
from kafkacompat.server.connection import KafkaConnection, ListenerServices
from kafkacompat.server.held_connection import MOST_HELD, HeldConnection
from kafkacompat.server.listener import KafkaFactory
from kafkacompat.wire.apis.heartbeat import HeartbeatResponse
from kafkacompat.wire.apis.produce import ProduceRequest, ProduceResponse
from kafkacompat.wire.compiler import decode_message
from kafkacompat.wire.frames import SIZE
from kafkacompat.wire.headers import encode_request
from kafkacompat.wire.schema import Versions
from tests.kafkacompat.server.world import Transport, World

PRODUCE, VERSION = 0, 8


class ProduceApi:
    request = ProduceRequest
    response = ProduceResponse
    versions = Versions(0, 8)


class ThrottledWorld(World):
    """A connection of the client "c", which has these quotas; each request takes no time unless a test says so."""

    def __init__(self, **quotas: float) -> None:
        self.quotas = ClientQuotas(QuotaWindows(11, 1000))
        self.quotas.update({make_entity([("client-id", "c")]): ClientConfig(quotas)})
        super().__init__(quotas=self.quotas)
        self.dispatcher.handlers[PRODUCE] = ProduceApi

    def produce(self, correlation_id: int, size_bytes: int = 0, response: Any = ..., version: int = VERSION) -> None:
        """Receive a Produce request whose body has this many bytes and a few more."""
        self.dispatcher.results.append(ProduceResponse() if response is ... else response)
        content = encode_request(ProduceRequest(transactional_id="x" * size_bytes), version, correlation_id, "c")
        self.connection.dataReceived(SIZE.pack(len(content)) + content)

    def throttle_times(self) -> list[int]:
        """Those in the responses to Produce requests that were sent."""
        sent, times = self.transport.sent, []
        while sent:
            end = SIZE.size + SIZE.unpack_from(sent)[0]
            times.append(decode_message(ProduceResponse, sent[8:end], VERSION).throttle_time_ms)
            sent = sent[end:]
        return times


def make_throttled(size_bytes: int = 20_000, **quotas: float) -> ThrottledWorld:
    world = ThrottledWorld(**(quotas or {"producer_byte_rate": 1000}))
    world.produce(1, size_bytes)
    return world


def test_the_response_leaves_at_once_and_the_connection_is_muted_for_its_throttle_time() -> None:
    world = make_throttled()
    (throttle_ms,) = world.throttle_times()
    assert throttle_ms == pytest.approx(10_000, abs=100)
    assert not world.transport.reading
    world.clock.advance(throttle_ms / 1000 - 0.001)
    assert not world.transport.reading
    world.clock.advance(0.002)
    assert world.transport.reading


def test_requests_that_have_arrived_wait_until_the_client_is_not_muted() -> None:
    world = make_throttled()
    world.produce(2, 0)
    assert world.dispatcher.seen == [1]
    world.clock.advance(11)
    assert world.dispatcher.seen == [1, 2]
    assert len(world.throttle_times()) == 2


def test_within_the_quota_nothing_is_muted() -> None:
    world = make_throttled(9000)
    assert world.throttle_times() == [0]
    assert world.transport.reading
    assert not world.clock.getDelayedCalls()


def test_a_client_without_quotas_is_not_metered() -> None:
    world = ThrottledWorld(producer_byte_rate=1)
    world.quotas.update({make_entity([("client-id", "other")]): ClientConfig({"producer_byte_rate": 1.0})})
    world.produce(1, 20_000)
    assert world.throttle_times() == [0]
    assert world.transport.reading


def test_one_throttled_connection_delays_no_other() -> None:
    throttled = make_throttled()
    other = World(throttled.clock)
    other.receive(1, 2)
    assert other.answered() == [1, 2]
    assert other.transport.reading


def test_without_a_response_the_connection_is_muted_all_the_same() -> None:
    world = ThrottledWorld(producer_byte_rate=1000)
    world.produce(1, 20_000, None)
    assert world.throttle_times() == []
    assert not world.transport.reading


def test_a_version_without_the_field_is_muted_all_the_same() -> None:
    world = ThrottledWorld(producer_byte_rate=1000)
    # A request of version 0 without topics has 10 bytes, and its header 11.
    for number in range(10_000 // 21 + 1):
        assert world.transport.reading
        world.produce(number, version=0)
    assert not world.transport.reading


def test_a_late_response_is_charged_when_it_is_sent() -> None:
    world = ThrottledWorld(producer_byte_rate=1000)
    pending: Pending[ProduceResponse] = Pending(Deferred())
    world.produce(1, 20_000, pending)
    assert world.transport.reading
    world.clock.advance(5)
    pending.response.callback(ProduceResponse())
    assert world.throttle_times()[0] == pytest.approx(10_000, abs=100)
    assert not world.transport.reading


def test_responses_in_flight_are_sent_while_the_client_is_muted() -> None:
    world = ThrottledWorld(producer_byte_rate=1000)
    pending: Pending[ProduceResponse] = Pending(Deferred())
    world.produce(1, 100, pending)
    world.produce(2, 20_000)
    assert world.throttle_times() == []
    pending.response.callback(ProduceResponse())
    assert len(world.throttle_times()) == 2
    assert not world.transport.reading


def test_the_longest_of_several_throttle_times_mutes() -> None:
    world = ThrottledWorld(producer_byte_rate=1000)
    first: Pending[ProduceResponse] = Pending(Deferred())
    second: Pending[ProduceResponse] = Pending(Deferred())
    world.produce(1, 30_000, first)
    world.produce(2, 100, second)
    second.response.callback(ProduceResponse())
    assert world.transport.reading
    first.response.callback(ProduceResponse())
    world.clock.advance(19)
    assert not world.transport.reading
    world.clock.advance(3)
    assert world.transport.reading


def test_a_throttle_time_of_the_handler_mutes_too() -> None:
    world = ThrottledWorld(producer_byte_rate=1000)
    world.produce(1, 10, ProduceResponse(throttle_time_ms=700))
    assert world.throttle_times() == [700]
    assert not world.transport.reading
    world.clock.advance(0.7)
    assert world.transport.reading


def test_request_time_is_measured_on_the_reactors_clock() -> None:
    world = ThrottledWorld(request_percentage=1)
    world.dispatcher.seconds = 0.2
    world.produce(1)
    assert world.throttle_times() == [1000]
    assert not world.transport.reading


def test_a_muted_connection_that_is_lost_leaves_no_timer() -> None:
    world = make_throttled()
    world.lose()
    assert not world.clock.getDelayedCalls()
    assert world.budget.held_bytes == 0


def test_what_a_client_has_used_counts_though_it_is_gone() -> None:
    world = ThrottledWorld(producer_byte_rate=1000)
    pending: Pending[ProduceResponse] = Pending(Deferred())
    world.produce(1, 20_000, pending)
    world.lose()
    pending.response.callback(ProduceResponse())
    uses = world.quotas.find_uses("ANONYMOUS", "c", 0)
    assert uses is not None
    assert uses.produce is not None
    assert uses.produce.measure(0) > 2000


def test_a_muted_connection_is_closed_when_the_broker_stops() -> None:
    world = make_throttled()
    world.connection.finish()
    assert world.transport.closing


def test_a_muted_connection_is_idle_as_in_kafka() -> None:
    """Else a client could hold a connection for as long as its throttle time, which has no bound."""
    world = make_throttled()
    world.clock.advance(3)
    now_ms = 3000
    world.connection.idle_ms(now_ms)
    world.clock.advance(1)
    assert world.connection.idle_ms(now_ms + 1000) >= 1000


def test_a_connection_that_waits_for_its_turn_is_not_read() -> None:
    world = World(delay_ms=300)
    assert not world.transport.reading
    world.clock.advance(0.3)
    assert world.transport.reading
    world.receive(1)
    assert world.answered() == [1]


class Port:
    """A listening port that a factory pauses."""

    connected = True

    def __init__(self) -> None:
        self.accepting = True

    def pauseProducing(self) -> None:
        self.accepting = False

    def resumeProducing(self) -> None:
        self.accepting = True


class Door:
    """The factory of a listener whose admissions a test lists."""

    def __init__(self, *admissions: ConnectionAdmission) -> None:
        self.world = World()
        self.clock: Clock = self.world.clock
        self.admissions = list(admissions)
        shared: ListenerServices = self.world.connection._shared
        self.factory = KafkaFactory(shared, lambda *_: Deferred(), lambda *_: None, lambda *_: self.admissions.pop(0))
        self.port = Port()
        self.factory.port = self.port  # type: ignore[assignment]

    def connect(self) -> tuple[Any, Transport]:
        """A connection that is accepted, and its transport."""
        address: Any = IPv4Address("TCP", "192.0.2.1", 1234)
        protocol, transport = self.factory.buildProtocol(address), Transport()
        if protocol is not None:
            protocol.makeConnection(transport)
        return protocol, transport


def test_connections_beyond_the_rate_wait_and_those_after_them_are_not_accepted() -> None:
    door = Door(ConnectionAdmission(), ConnectionAdmission(200), ConnectionAdmission(500))
    assert door.connect()[1].reading
    assert door.port.accepting
    _, second = door.connect()
    _, third = door.connect()
    assert not second.reading
    assert not door.port.accepting
    door.clock.advance(0.2)
    assert (second.reading, third.reading, door.port.accepting) == (True, False, False)
    door.clock.advance(0.3)
    assert (third.reading, door.port.accepting) == (True, True)


def test_a_port_that_is_closed_is_not_resumed() -> None:
    door = Door(ConnectionAdmission(200))
    protocol, _ = door.connect()
    door.factory.stopFactory()
    door.clock.advance(1)
    assert not door.port.accepting
    assert isinstance(protocol, KafkaConnection)


def test_a_connection_of_an_address_beyond_its_rate_is_held_and_closed() -> None:
    door = Door(ConnectionAdmission(400, closes=True))
    protocol, transport = door.connect()
    assert isinstance(protocol, HeldConnection)
    assert not transport.reading
    door.clock.advance(0.399)
    assert not transport.aborted
    door.clock.advance(0.001)
    assert transport.aborted
    assert "more connections a second than its quota" in door.world.complaints[0]
    assert door.port.accepting


def test_a_held_connection_that_is_lost_leaves_no_timer_and_makes_room() -> None:
    door = Door(*[ConnectionAdmission(400, closes=True)] * (MOST_HELD + 2))
    held = [door.connect()[0] for _ in range(MOST_HELD)]
    assert door.connect()[0] is None
    held[0].connectionLost()
    assert isinstance(door.connect()[0], HeldConnection)
    assert len(door.clock.getDelayedCalls()) == MOST_HELD


def test_the_throttle_time_of_a_heartbeat_is_in_its_response() -> None:
    world = ThrottledWorld(request_percentage=1)
    world.dispatcher.seconds = 0.2
    response = HeartbeatResponse()
    world.dispatcher.results.append(response)
    world.receive(1)
    assert world.answered() == [1]
    # The world's heartbeats have version 0, which has no field for it.
    assert response.throttle_time_ms == 0
    assert not world.transport.reading


@pytest.mark.parametrize("throttle_ms", [0, 1000])
def test_a_lost_connection_is_gone_without_a_garbage_collector(throttle_ms: int) -> None:
    world = World()
    gone = weakref.ref(world.connection)
    world.receive(1)
    if throttle_ms:
        world.connection.mute(throttle_ms)
    world.lose()
    world.transport.on_drained = None  # as the real transport does
    gc.disable()
    try:
        del world.connection
        assert gone() is None
    finally:
        gc.enable()
