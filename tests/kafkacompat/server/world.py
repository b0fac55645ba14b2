"""A connection between a transport and a dispatcher that do what a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.handlers.context import Pending, UnanswerableError
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.server.connection import KafkaConnection, ListenerServices
from kafkacompat.server.frame_budget import FrameBudget
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.frames import SIZE
from kafkacompat.wire.headers import encode_request
from kafkacompat.wire.schema import Request, Versions


class Address:
    host = "192.0.2.1"
    port = 1234


class Transport:
    """Takes parts like the zero-copy transport; ``stuck_bytes`` is what the client has not read."""

    def __init__(self) -> None:
        self.connected = True
        self.reading = True
        self.closing = self.aborted = False
        self.sent = b""
        self.stuck_bytes = 0
        self.sends: list[int] = []
        self.on_drained: Callable[[], None] | None = None
        self.read_ahead: object = None

    @property
    def queued_bytes(self) -> int:
        return self.stuck_bytes

    @property
    def sent_bytes(self) -> int:
        return len(self.sent) - self.stuck_bytes

    def getHost(self) -> Address:
        return Address()

    def getPeer(self) -> Address:
        return Address()

    def send_parts(self, parts: list[bytes]) -> None:
        data = b"".join(parts)
        self.sends.append(len(data))
        self.sent += data

    def pauseProducing(self) -> None:
        self.reading = False

    def resumeProducing(self) -> None:
        self.reading = True

    def abortConnection(self) -> None:
        self.aborted = True
        self.connected = False

    def loseConnection(self) -> None:
        self.closing = True


class Served:
    request: type[Request] = HeartbeatRequest
    response = HeartbeatResponse
    versions = Versions(0, 4)


class Dispatcher:
    """Answers with what a test put in ``results``, else at once; each request takes ``seconds`` of the clock."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.seconds = 0.0
        self.handlers: dict[int, Any] = {12: Served}
        self.results: list[Any] = []
        self.seen: list[int] = []

    def dispatch(self, incoming: Any, context: Any) -> Any:
        self.seen.append(incoming.correlation_id)
        if self.seconds:
            self.clock.advance(self.seconds)
        result = self.results.pop(0) if self.results else HeartbeatResponse()
        if isinstance(result, Exception):
            raise result
        return result

    def build_failure_response(self, incoming: Any, problem: BaseException) -> Any:
        if isinstance(problem, UnanswerableError):
            raise problem
        return HeartbeatResponse(error_code=1)


class World:
    def __init__(self, clock: Any = None, quotas: ClientQuotas | None = None, delay_ms: int = 0) -> None:
        self.clock: Any = clock or Clock()
        self.dispatcher = Dispatcher(self.clock)
        self.complaints: list[str] = []
        self.budget = FrameBudget(1_000_000, lambda: 0)
        self.connections: set[KafkaConnection] = set()
        shared = ListenerServices(
            "PLAINTEXT",
            self.dispatcher,  # type: ignore[arg-type]
            self.budget,
            1_000_000,
            self.clock,
            self.connections,
            lambda host, text: self.complaints.append(text),
            quotas=quotas or ClientQuotas(),
        )
        self.connection = KafkaConnection(shared, lambda *_: Deferred(), delay_ms)
        self.transport = Transport()
        self.connection.makeConnection(self.transport)

    def receive(self, *correlation_ids: int) -> None:
        self.connection.dataReceived(b"".join(map(make_request, correlation_ids)))

    def answered(self) -> list[int]:
        """Correlation ids of the answers sent, each a frame of ten bytes."""
        sent = self.transport.sent
        return [SIZE.unpack_from(sent, position + 4)[0] for position in range(0, len(sent), 10)]

    def lose(self) -> None:
        """The client is gone."""
        self.transport.connected = False
        self.connection.connectionLost(Failure(ConnectionDone()))

    def pending(self, *, in_order: bool = False) -> Pending[HeartbeatResponse]:
        pending: Pending[HeartbeatResponse] = Pending(Deferred(), in_order)
        self.dispatcher.results.append(pending)
        return pending


def make_request(correlation_id: int, group_id: str = "") -> bytes:
    content = encode_request(HeartbeatRequest(group_id=group_id), 0, correlation_id, "c")
    return SIZE.pack(len(content)) + content
