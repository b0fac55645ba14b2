"""Accepting clients: a port for each listener, and the periodic sweeps over all connections."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.internet.protocol import ServerFactory
from twisted.internet.task import deferLater

from kafkacompat.complaints import LoggedComplaints
from kafkacompat.metrics.connections import ListenerTraffic
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.quotas.connection_rates import ADMITTED, ConnectionAdmission
from kafkacompat.quotas.limits import CONNECTION_RATE
from kafkacompat.server.bind_advice import explain_bind_failure
from kafkacompat.server.connection import KafkaConnection, ListenerServices
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.server.frame_budget import FrameBudget
from kafkacompat.server.held_connection import MOST_HELD, HeldConnection
from kafkacompat.server.instance_connections import InstanceConnections
from kafkacompat.timers import Clock, PeriodicCall, steady_ms

if TYPE_CHECKING:
    from twisted.internet.interfaces import IAddress
    from twisted.internet.protocol import Protocol

    from kafkacompat.metrics.requests import RequestMetrics
    from kafkacompat.network import ListeningPort, Network
    from kafkacompat.security.tls.listeners import TlsListener
    from kafkacompat.server.connection_limits import Objection
    from kafkacompat.server.sasl_gate import SaslGate
    from kafkacompat.server.tls_server import Handshakes
    from kafkacompat.server.transport import ReadAhead
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.timers import DelayedCall

log = logging.getLogger(__name__)

SWEEP_INTERVAL_S = 5
ACCEPT_BACKLOG = 1024
STOP_TIMEOUT_S = 5
"""Time that clients have to read their last responses before the broker closes their connections."""
STOP_CHECK_S = 0.02

TurnAway = Callable[[str, str, "Collection[KafkaConnection]"], "Objection | None"]
"""Returns why another client of a listener, from an address, is rejected beside these connections; None accepts it."""

Admit = Callable[[str, str], ConnectionAdmission]
"""Counts a new client of a listener, from an address, and returns what happens to it."""


class ListenError(Exception):
    """A listener's address cannot be bound."""


class KafkaFactory(ServerFactory):
    """Builds the connections of one listener, over TLS if *tls* is given; ``port`` is set when it is bound."""

    noisy = False
    """Whether Twisted logs that the listener begins and ends. Until logging begins, it keeps such events in memory, and so the broker."""

    def __init__(
        self,
        shared: ListenerServices,
        read_ahead: ReadAhead,
        turn_away: TurnAway,
        admit: Admit = lambda *_: ADMITTED,
        tls: TlsListener | None = None,
    ) -> None:
        self.shared = shared
        self.port: ListeningPort | None = None
        self._read_ahead = read_ahead
        self._turn_away = turn_away
        self._tls = tls
        self._handshakes: Handshakes | None = None
        self._admit = admit
        self._resuming: DelayedCall | None = None
        self._held: set[HeldConnection] = set()

    def buildProtocol(self, addr: IAddress | None) -> Protocol | None:
        """Twisted: a client connects; None closes the connection."""
        shared, host = self.shared, getattr(addr, "host", "")
        objection = self._turn_away(shared.listener_name, host, shared.connections)
        if objection is not None:
            shared.traffic.turned_away[objection.limit] += 1
            shared.complain(host, f"turning away {host}: {objection.text}")
            return None
        admission = self._admit(shared.listener_name, host)
        if admission.closes:
            shared.traffic.turned_away[CONNECTION_RATE] += 1
            shared.traffic.held.add(admission.delay_ms, steady_ms(shared.clock))
            shared.complain(host, f"turning away {host}: it makes more connections a second than its quota allows")
            # Each of these holds a file descriptor.
            return HeldConnection(shared.clock, admission.delay_ms, self._held) if len(self._held) < MOST_HELD else None
        if admission.delay_ms:
            shared.traffic.delayed.add(admission.delay_ms, steady_ms(shared.clock))
            self._pause_accepting(admission.delay_ms / 1000)
        is_secured = self._tls is not None
        connection = KafkaConnection(shared, self._read_ahead, admission.delay_ms, is_secured=is_secured)
        return connection if self._tls is None else self._secure(connection, self._tls)

    def _secure(self, connection: KafkaConnection, tls: TlsListener) -> Protocol:
        # A broker without TLS does not pay for it.
        from kafkacompat.server.tls_server import Handshakes, TlsServer

        self._handshakes = self._handshakes or Handshakes()
        return TlsServer(tls, connection, self.shared.clock, self._handshakes)

    def _pause_accepting(self, duration_s: float) -> None:
        """Let new clients wait in the system's queue; this one waits for its turn with its connection open."""
        if self.port is None:
            return
        if self._resuming is not None:
            self._resuming.reset(duration_s)
            return
        self.port.pauseProducing()
        self._resuming = self.shared.clock.callLater(duration_s, self._resume_accepting)

    def _resume_accepting(self) -> None:
        self._resuming = None
        if self.port is not None and self.port.connected:
            self.port.resumeProducing()

    def stopFactory(self) -> None:
        """Twisted: the port is closed."""
        self.port = None
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None


class KafkaServer:
    """All listeners of a broker and their connections.

    ``max_idle_ms`` is Kafka's ``connections.max.idle.ms`` (negative: never), ``max_queued_bytes`` its
    ``queued.max.request.bytes`` (not positive: no limit). ``network`` makes the ports. ``read_ahead`` loads file
    regions into memory off the reactor thread; ``turn_away`` returns why a client is rejected, ``admit`` when it is served.
    ``quotas`` are those of clients. ``metrics`` measures requests. ``instances`` are those of tenants; *find_required* returns the
    listeners that serve only their clients.
    """

    def __init__(
        self,
        reactor: Clock,
        dispatcher: Dispatcher,
        *,
        network: Network,
        max_frame_bytes: int,
        max_queued_bytes: int,
        max_idle_ms: int,
        read_ahead: ReadAhead,
        turn_away: TurnAway = lambda *_: None,
        admit: Admit = lambda *_: ADMITTED,
        quotas: ClientQuotas | None = None,
        metrics: RequestMetrics | None = None,
        instances: Instances | None = None,
        find_required: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._reactor = reactor
        self._dispatcher = dispatcher
        self._network = network
        self._max_frame_bytes = max_frame_bytes
        self._max_idle_ms = max_idle_ms
        self._read_ahead = read_ahead
        self._turn_away = turn_away
        self._admit = admit
        self._quotas = ClientQuotas() if quotas is None else quotas
        self._metrics = metrics
        self.traffic: dict[str, ListenerTraffic] = {}
        """The counters of each listener that was ever bound, by its name."""
        self.budget = FrameBudget(max_queued_bytes, self._now_ms)
        self.connections: set[KafkaConnection] = set()
        self.wrap_dispatcher: Callable[[Dispatcher], Any] | None = None
        """Returns the object that answers a listener's requests in place of its dispatcher; None: the dispatcher itself answers."""
        self.tenants: InstanceConnections | None = None
        if instances is not None:
            self.tenants = InstanceConnections(instances, self.connections, reactor, find_required)
        self._complaints = LoggedComplaints(reactor, say=log.warning)
        self._ports: dict[str, ListeningPort] = {}
        self._sweep = PeriodicCall(reactor, self.sweep)

    def _now_ms(self) -> int:
        return steady_ms(self._reactor)

    def listen(
        self,
        listener_name: str,
        host: str,
        port: int,
        dispatcher: Dispatcher | None = None,
        begin_sasl: Callable[[], SaslGate] | None = None,
        tls: TlsListener | None = None,
        turn_away: TurnAway | None = None,
        traffic_name: str = "",
    ) -> int:
        """Bind one listener, with a dispatcher of its own and with TLS if given; return its port (a free one for 0).

        *begin_sasl* begins the authentication of a connection, on a listener with SASL. *turn_away* replaces the server's.
        Metrics count the connections under *traffic_name* if it is given.

        Raises ListenError, one sentence, when the address cannot be bound.
        """
        dispatcher = dispatcher or self._dispatcher
        shared = ListenerServices(
            listener_name,
            dispatcher if self.wrap_dispatcher is None else self.wrap_dispatcher(dispatcher),
            self.budget,
            self._max_frame_bytes,
            self._reactor,
            self.connections,
            self._complaints,
            begin_sasl,
            self._quotas,
            self.traffic.setdefault(traffic_name or listener_name, ListenerTraffic()),
            self._metrics,
            self.tenants,
            traffic_name,
        )
        factory = KafkaFactory(shared, self._read_ahead, turn_away or self._turn_away, self._admit, tls)
        try:
            listening = self._network.listen(port, factory, ACCEPT_BACKLOG, host)
        except CannotListenError as problem:
            reason = explain_bind_failure(host, port, problem.socketError)
            raise ListenError(f"listener {listener_name}: {reason}") from None
        self._ports[listener_name] = factory.port = listening
        return int(listening.getHost().port)

    def start(self) -> None:
        """Begin the sweeps for idle and stalled connections."""
        self._sweep.start(SWEEP_INTERVAL_S, now=False)

    def sweep(self) -> None:
        """Close connections that have been idle for too long, and a stalled one that holds up others."""
        now_ms = self._now_ms()
        for connection in list(self.connections):
            if 0 <= self._max_idle_ms < connection.idle_ms(now_ms):
                connection.close_idle()
        self.budget.check_stalled()

    def stop_listening(self) -> list[Deferred[None]]:
        """Close all ports; connections stay open. Each Deferred fires when its port is closed."""
        return [port.stopListening() for port in self._ports.values() if port.connected]

    def find_objection(
        self, listener_name: str, host: str, connections: Collection[KafkaConnection]
    ) -> Objection | None:
        """Return why a client is rejected by the limits of the broker and of the listener; None accepts it."""
        return self._turn_away(listener_name, host, connections)

    @property
    def listening(self) -> frozenset[str]:
        """The names of the listeners that are bound."""
        return frozenset(self._ports)

    def give_up(self, listener_name: str) -> Deferred[None]:
        """Unbind one listener; its connections answer their requests in flight and close."""
        for connection in list(self.connections):
            if connection.peer.listener_name == listener_name:
                connection.finish()
        return self._ports.pop(listener_name).stopListening()

    def abort(self) -> None:
        """End every connection at once."""
        for connection in list(self.connections):
            connection.transport.abortConnection()

    async def wait_for_clients(self) -> None:
        """Wait until the clients of `finish` have read their responses, at most STOP_TIMEOUT_S; then end their connections."""
        deadline = self._reactor.seconds() + STOP_TIMEOUT_S
        while self.connections and self._reactor.seconds() < deadline:
            await deferLater(self._reactor, STOP_CHECK_S)  # type: ignore[arg-type]  # it fits IReactorTime
        for connection in list(self.connections):
            connection.cut_off("the broker stops and the client does not read its responses")

    def finish(self) -> None:
        """Let every connection answer its requests in flight and close."""
        if self._sweep.running:
            self._sweep.stop()
        for connection in list(self.connections):
            connection.finish()
