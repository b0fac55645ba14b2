"""Brokers that answer what a test says, and connections to them over a network in memory."""

from __future__ import annotations

from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol, ServerFactory
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.handlers import HANDLERS
from kafkacompat.wire.apis.api_versions import ApiVersion, ApiVersionsResponse
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.connection import IncomingRequest, ServerConnection
from kafkacompat.wire.frames import FrameReader
from kafkacompat.wire.schema import Response
from tests.fakes.memory_network import MemoryNetwork

PORT = 9092
TIMEOUT_S = 30.0
BACKOFF_S, MAX_BACKOFF_S, SETUP_TIMEOUT_S = 0.1, 1.0, 10.0
MAX_FRAME_BYTES = 100_000


class Accepted(Protocol):
    """One accepted connection; ``requests`` are those that a test has not answered."""

    transport: Any

    def __init__(self, broker: ScriptedBroker) -> None:
        self._broker = broker
        self._frames = FrameReader(1 << 30)
        self.server = ServerConnection(HANDLERS)
        self.requests: list[IncomingRequest] = []
        self.lost: Failure | None = None

    def dataReceived(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            request = self.server.parse(frame)
            list(request.reading or ())
            if request.api_key == 18 and self._broker.lists_versions:
                self.answer(request, self._broker.versions)
            else:
                self.requests.append(request)

    def connectionLost(self, reason: Failure = Failure(ConnectionError())) -> None:  # noqa: B008
        self.lost = reason

    def answer(self, request: IncomingRequest, response: Response) -> None:
        list(self.server.answer(request, response, request.api_version) or ())
        self.transport.send_parts(self.server.take_parts())

    def answer_next(self, error_code: int = 0) -> None:
        """Answer the oldest Heartbeat."""
        self.answer(self.requests.pop(0), HeartbeatResponse(error_code=error_code))


class ScriptedBroker(ServerFactory):
    """A broker that tells its versions by itself, while ``lists_versions`` is set, and leaves the rest to a test."""

    noisy = False

    def __init__(self) -> None:
        self.lists_versions = True
        self.versions = ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=handler.versions.first, max_version=handler.versions.last)
                for key, handler in HANDLERS.items()
            ]
        )
        self.accepted: list[Accepted] = []

    def buildProtocol(self, addr: object) -> Accepted:
        self.accepted.append(Accepted(self))
        return self.accepted[-1]


class World:
    """This broker, and others that listen at their hosts."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Clock()
        self.network = MemoryNetwork(self.clock)
        self.settings = ConnectionSettings(
            "broker-1",
            **{
                "setup_timeout_s": SETUP_TIMEOUT_S,
                "reconnect_backoff_s": BACKOFF_S,
                "max_reconnect_backoff_s": MAX_BACKOFF_S,
                "max_frame_bytes": MAX_FRAME_BYTES,
                **settings,
            },
        )
        self.connections = BrokerConnections(self.settings, self.network.at("here"), self.clock, Random(1))
        self.addresses: dict[int, BrokerAddress] = {}

    def broker(self, node_id: int, *, listens: bool = True) -> ScriptedBroker:
        """Another broker at a host of its own."""
        broker, host = ScriptedBroker(), f"host-{node_id}"
        self.addresses[node_id] = BrokerAddress(node_id, host, PORT)
        self.network.at(host)
        if listens:
            self.listen(node_id, broker)
        return broker

    def listen(self, node_id: int, broker: ScriptedBroker) -> None:
        self.network.at(f"host-{node_id}").listen(PORT, broker, 1, "")

    def request(self, node_id: int = 2, purpose: str = "p", number: int = 0, timeout_s: float = TIMEOUT_S) -> Outcome:
        """Send a Heartbeat that a number tells from others."""
        request = HeartbeatRequest(generation_id=number)
        return Outcome(self.connections.request(self.addresses[node_id], purpose, request, timeout_s=timeout_s))

    def turn(self) -> None:
        """Let everything that travels arrive, without time passing."""
        for _ in range(20):
            self.clock.advance(0)

    def timers(self) -> int:
        return len(self.clock.getDelayedCalls())


class Outcome:
    """What became of a request."""

    def __init__(self, result: Deferred[Any]) -> None:
        self.result = result
        self.response: Any = None
        self.problem: Any = None
        result.addCallbacks(self._succeed, self._fail)

    def _succeed(self, response: Any) -> None:
        self.response = response

    def _fail(self, failure: Failure) -> None:
        self.problem = failure.value

    @property
    def is_open(self) -> bool:
        return self.response is None and self.problem is None
