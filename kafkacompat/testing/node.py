"""One broker on one machine, started, stopped and used in the thread of the brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from twisted.internet.task import deferLater

from kafkacompat.broker import START_ERRORS, Broker
from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.broker import PROPERTIES
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.handlers.context import UNKNOWN_SOFTWARE, Peer, RequestContext
from kafkacompat.security.principals import parse_principal
from kafkacompat.server.direct_requests import answer_directly
from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.process_reactor import ProcessReactor
from kafkacompat.testing.security import SUPER_USER
from kafkacompat.wire.client_connection import SOFTWARE_NAME

if TYPE_CHECKING:
    from kafkacompat.config.listeners import Listener
    from kafkacompat.faults import Faults
    from kafkacompat.host import Host
    from kafkacompat.server.connection import KafkaConnection
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.wire.schema import Request

WILDCARD_HOSTS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
CLIENT_ID = "kafkacompat.testing"
CLOSING_TURNS = 4
"""Turns of the reactor in which Twisted accepts a connection, reads its end and closes its socket."""
HELPER = parse_principal(SUPER_USER)


class Node:
    """A broker that can start again on what it has left.

    *make_host* returns its machine for each of its processes, from the process's reactor. Data in a *folder* outlive the
    node; None means memory. ``left_open`` are the clients that were connected at the end. *faults* are
    the rules of the test.
    """

    def __init__(
        self,
        make_host: Callable[[ProcessReactor], Host],
        reactor: Any,
        properties: Mapping[str, str],
        *,
        folder: str | None,
        faults: Faults,
    ) -> None:
        self._make_host = make_host
        self._reactor = reactor
        self._properties = dict(properties)
        self.folder = folder
        self._faults = faults
        self.clock = ProcessReactor(reactor)
        """The reactor of the broker's present or last process."""
        self.left_open: list[str] = []
        self._broker: Broker | None = None
        self._first_listener: Listener | None = None
        self._dispatcher: Dispatcher | None = None

    @property
    def node_id(self) -> int:
        """The broker's id."""
        return int(self._properties["node.id"])

    @property
    def broker(self) -> Broker:
        """The broker that runs; raises BrokerError if none does."""
        if self._broker is None:
            raise BrokerError(f"broker {self.node_id} does not run: start it first")
        return self._broker

    @property
    def is_running(self) -> bool:
        """Whether the broker runs."""
        return self._broker is not None

    @property
    def first_listener(self) -> Listener:
        """The listener whose address `find_address` returns by default; raises BrokerError before the first start."""
        if self._first_listener is None:
            raise BrokerError(f"broker {self.node_id} has not run: start it first")
        return self._first_listener

    def find_address(self, listener: str | None = None) -> str:
        """Return ``host:port`` of a listener, by default of the first one."""
        bound = self.broker.listeners.bound
        host, port = bound[listener or next(iter(bound))]
        host = WILDCARD_HOSTS.get(host, host)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def start(self) -> None:
        """Start the broker, unless it runs; raises BrokerError, one sentence. A later start binds the same ports again."""
        if self._broker is not None:
            return
        self.clock = ProcessReactor(self._reactor)
        try:
            config = BrokerConfig(self._properties)
            check_names(config)
            broker = Broker(self._make_host(self.clock), config, faults=self._faults)
            await broker.start()
        except START_ERRORS as problem:
            raise BrokerError(f"the broker cannot start: {problem}") from None
        self._broker = broker
        # Those that are added while the broker runs are not among the given ones, and come after them.
        self._first_listener = next(item for item in config.listeners if item.name in broker.listeners.bound)
        ports = {name: port for name, (_, port) in broker.listeners.bound.items()}
        self._properties["listeners"] = config.with_ports(ports).given["listeners"]

    async def stop(self) -> None:
        """Stop the broker in order, if it runs: clients receive the responses to their requests."""
        broker, self._broker, self._dispatcher = self._broker, None, None
        if broker is not None:
            await broker.stop()

    async def kill(self) -> None:
        """End the broker without notice, if it runs; its session with ZooKeeper ends, too."""
        broker, self._broker, self._dispatcher = self._broker, None, None
        if broker is not None:
            await broker.abandon()
            # Twisted closes the sockets of aborted connections in its next turns.
            for _ in range(CLOSING_TURNS):
                await deferLater(self._reactor, 0)
            self.clock.kill()

    async def disconnect_clients(self) -> None:
        """Note the clients that are connected at the end of a test, and disconnect them."""
        if self._broker is None:
            return
        server = self._broker.server
        # Clients that were closed just now are noticed in one of these turns.
        for _ in range(CLOSING_TURNS):
            await deferLater(self._reactor, 0)
            clients = [connection for connection in server.connections if connection.software.name != SOFTWARE_NAME]
            if not clients:
                break
            for connection in clients:
                # The broker does not read while requests wait for others, and only reading shows the end of a connection.
                connection.transport.resumeProducing()
        self.left_open += map(describe_client, clients)
        if clients:
            server.finish()
            await deferLater(self._reactor, 0)
            server.abort()
            await deferLater(self._reactor, 0)

    async def request(self, request: Request, version: int | None = None) -> Any:
        """Return the broker's response to a request of a helper, in the highest version if none is given."""
        if self._dispatcher is None:
            self._dispatcher = self.broker.build_dispatcher()
        version = request.VERSIONS.last if version is None else version
        listener, (host, port) = next(iter(self.broker.listeners.bound.items()))
        peer = Peer(listener, "127.0.0.1", 0, host, port)
        return await answer_directly(
            self._dispatcher, request, RequestContext(version, CLIENT_ID, peer, principal=HELPER)
        )


def describe_client(connection: KafkaConnection) -> str:
    """Return the software of a connection's client, if it has named it (KIP-511)."""
    software = connection.software
    return "a client without a name" if software.name == UNKNOWN_SOFTWARE else f"{software.name} {software.version}"


def check_names(config: BrokerConfig) -> None:
    """Raise ConfigError for a property that no broker has: a misspelt one would have no effect."""
    for name in config.unknown_names:
        raise ConfigError(f"{name} is no property of a broker{did_you_mean(name, PROPERTIES)}")
