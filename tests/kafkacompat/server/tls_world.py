"""A listener with TLS and clients of it, on one clock and over a network in memory."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from OpenSSL import SSL
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.config import BrokerConfig
from kafkacompat.quotas.connection_rates import ADMITTED, ConnectionAdmission
from kafkacompat.security.tls.listeners import TlsListener, TlsListeners
from kafkacompat.security.tls.session import TlsSession
from kafkacompat.server.connection import KafkaConnection, ListenerServices
from kafkacompat.server.frame_budget import FrameBudget
from kafkacompat.server.listener import KafkaFactory
from tests.fakes.certificates import Member, shared_authority, shared_member
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.memory_network import MemoryNetwork
from tests.kafkacompat.server.world import Dispatcher

PORT = 9093
NOW = 1_700_000_000


def make_properties(member: Member, **changes: str) -> dict[str, str]:
    """Properties of a broker with one listener, which shows *member*'s certificate and trusts the shared authority."""
    return {
        "node.id": "1",
        "listeners": f"SSL://broker-1:{PORT}",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": member.key_pem(),
        "ssl.keystore.certificate.chain": member.certificates_pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": shared_authority().pem,
        **{name.replace("_", "."): value for name, value in changes.items()},
    }


def open_listener(properties: dict[str, str], files: MemoryFiles | None = None) -> TlsListener:
    clock = Clock()
    clock.advance(NOW)
    config = BrokerConfig(properties)
    return TlsListeners(files or MemoryFiles(), clock).open(config, config.listeners[0])


class PlainClient(Protocol):
    """Collects what it receives, and sends what a test says."""

    transport: Any

    def __init__(self) -> None:
        self.received = b""
        self.ending: Failure | None = None

    def dataReceived(self, data: bytes) -> None:
        self.received += data

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]
        self.ending = reason


class TlsClient(PlainClient):
    """Shakes hands as a client does; ``plain`` is what arrived, ``alert`` what the server objects to."""

    def __init__(self, context: SSL.Context) -> None:
        super().__init__()
        self.session = SSL.Connection(context, None)
        self.session.set_connect_state()
        self.plain = b""
        self.alert = ""
        self.is_up = False

    def connectionMade(self) -> None:
        self.advance()

    def advance(self) -> None:
        try:
            if not self.is_up:
                self.session.do_handshake()
                self.is_up = True
            while True:
                self.plain += self.session.recv(16384)
        except SSL.WantReadError:
            pass
        except SSL.ZeroReturnError:
            self.alert = "closed"
        except SSL.Error as problem:
            self.alert = problem.args[0][-1][-1] if problem.args[0] else "end"
        self.flush()

    def flush(self) -> None:
        with suppress(SSL.WantReadError):
            self.transport.write(self.session.bio_read(1 << 20))

    def send(self, data: bytes) -> None:
        self.session.sendall(data)
        self.flush()

    def dataReceived(self, data: bytes) -> None:
        super().dataReceived(data)
        self.session.bio_write(data)
        self.advance()


class TlsWorld:
    """A listener that answers with what its dispatcher says, to clients that are admitted so; ``complaints`` are the lines of its log."""

    def __init__(self, admission: ConnectionAdmission = ADMITTED, /, **changes: str) -> None:
        self.clock: Any = Clock()
        self.clock.advance(NOW)
        self.network = MemoryNetwork(self.clock)
        self.tls = open_listener(make_properties(shared_member("broker-1"), **changes))
        self.dispatcher = Dispatcher(self.clock)
        self.complaints: list[str] = []
        self.connections: set[KafkaConnection] = set()
        self.reads_ahead: list[tuple[Any, int, int, Deferred[None]]] = []
        shared = ListenerServices(
            "SSL",
            self.dispatcher,  # type: ignore[arg-type]
            FrameBudget(100_000_000, lambda: 0),
            100_000_000,
            self.clock,
            self.connections,
            lambda host, text: self.complaints.append(text),
        )
        factory = KafkaFactory(shared, self._read_ahead, lambda *_: None, lambda *_: admission, tls=self.tls)
        self.network.at("broker-1").listen(PORT, factory, 10, "broker-1")

    def _read_ahead(self, region: Any, offset: int, size_bytes: int) -> Deferred[None]:
        reading: Deferred[None] = Deferred()
        self.reads_ahead.append((region, offset, size_bytes, reading))
        return reading

    def turn(self, seconds: float = 0.0, turns: int = 50) -> None:
        for _ in range(turns):
            self.clock.advance(seconds / turns)

    def connect(self, client: Any, host: str = "client") -> Any:
        self.network.at(host).connect("broker-1", PORT, client, 30)
        self.turn()
        return client

    def connect_tls(self, member: Member | None = None, **settings: Any) -> TlsClient:
        client: TlsClient = self.connect(TlsClient(make_client_context(member, **settings)))
        return client

    @property
    def connection(self) -> KafkaConnection:
        (connection,) = self.connections
        return connection


def make_client_context(member: Member | None = None, *, version: int | None = None) -> SSL.Context:
    """The context of a client that accepts every certificate, and shows one if it has one."""
    context = SSL.Context(SSL.TLS_METHOD)
    if member is not None:
        context.use_privatekey(member.key)
        context.use_certificate(member.certificate)
    if version is not None:
        context.set_min_proto_version(version)
        context.set_max_proto_version(version)
    return context


def shake_hands(client: TlsSession, server: TlsSession) -> None:
    """Let two sessions shake hands; raises TlsError."""
    client.advance()
    for _ in range(10):
        for sender, receiver in ((client, server), (server, client)):
            output = sender.take_output()
            if output:
                receiver.receive(output)
