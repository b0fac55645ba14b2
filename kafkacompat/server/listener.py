"""Accepting clients: a port for each listener, and the periodic sweeps over all connections."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.internet.protocol import ServerFactory
from twisted.internet.task import LoopingCall

from kafkacompat.metrics.connections import ListenerTraffic
from kafkacompat.server.bind_advice import explain_bind_failure
from kafkacompat.server.connection import KafkaConnection, ListenerServices
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.server.frame_budget import FrameBudget
from kafkacompat.timers import Clock, steady_ms

if TYPE_CHECKING:
    from twisted.internet.interfaces import IAddress

    from kafkacompat.metrics.requests import RequestMetrics
    from kafkacompat.network import ListeningPort, Network
    from kafkacompat.server.transport import ReadAhead

log = logging.getLogger(__name__)

SWEEP_INTERVAL_S = 5
COMPLAINTS_PER_SECOND = 100
ACCEPT_BACKLOG = 1024


TurnAway = Callable[[str, str, "Collection[KafkaConnection]"], "str | None"]
"""Returns why another client of a listener, from an address, is rejected beside these connections; None accepts it."""


class ListenError(Exception):
    """A listener's address cannot be bound."""


class LoggedComplaints:
    """Logs at most COMPLAINTS_PER_SECOND lines about a client: a hostile one must not fill the disk with log lines."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[str, int] = {}
        self._since = clock.seconds()

    def __call__(self, host: str, text: str) -> None:
        if self._clock.seconds() - self._since >= 1:
            self._start_over()
        said = self._said[host] = self._said.get(host, 0) + 1
        if said <= COMPLAINTS_PER_SECOND:
            log.warning("%s", text)

    def _start_over(self) -> None:
        for host, said in self._said.items():
            if said > COMPLAINTS_PER_SECOND:
                log.warning("%d more lines like these about %s", said - COMPLAINTS_PER_SECOND, host)
        self._said.clear()
        self._since = self._clock.seconds()


class KafkaFactory(ServerFactory):
    """Builds the connections of one listener."""

    def __init__(self, shared: ListenerServices, read_ahead: ReadAhead, turn_away: TurnAway) -> None:
        self.shared = shared
        self._read_ahead = read_ahead
        self._turn_away = turn_away

    def buildProtocol(self, addr: IAddress | None) -> KafkaConnection | None:
        """Twisted: a client connects; None closes the connection."""
        shared, host = self.shared, getattr(addr, "host", "")
        reason = self._turn_away(shared.listener_name, host, shared.connections)
        if reason is not None:
            shared.traffic.note_turned_away()
            shared.complain(host, f"turning away {host}: {reason}")
            return None
        return KafkaConnection(shared, self._read_ahead)


class KafkaServer:
    """All listeners of a broker and their connections.

    ``max_idle_ms`` is Kafka's ``connections.max.idle.ms`` (negative: never), ``max_queued_bytes`` its
    ``queued.max.request.bytes`` (not positive: no limit). ``network`` makes the ports. ``read_ahead`` loads file
    regions into memory off the reactor thread; ``turn_away`` returns why a client is rejected. ``metrics`` measures requests.
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
        metrics: RequestMetrics | None = None,
    ) -> None:
        self._reactor = reactor
        self._dispatcher = dispatcher
        self._network = network
        self._max_frame_bytes = max_frame_bytes
        self._max_idle_ms = max_idle_ms
        self._read_ahead = read_ahead
        self._turn_away = turn_away
        self._metrics = metrics
        self.traffic: dict[str, ListenerTraffic] = {}
        """The counters of each listener that was ever bound, by its name."""
        self.budget = FrameBudget(max_queued_bytes, self._now_ms)
        self.connections: set[KafkaConnection] = set()
        self._complaints = LoggedComplaints(reactor)
        self._ports: dict[str, ListeningPort] = {}
        self._sweep = LoopingCall(self.sweep)
        self._sweep.clock = reactor  # type: ignore[assignment]

    def _now_ms(self) -> int:
        return steady_ms(self._reactor)

    def listen(self, listener_name: str, host: str, port: int, dispatcher: Dispatcher | None = None) -> int:
        """Bind one listener, with a dispatcher of its own if given; return its port (a free one for 0).

        Raises ListenError, one sentence, when the address cannot be bound.
        """
        shared = ListenerServices(
            listener_name,
            dispatcher or self._dispatcher,
            self.budget,
            self._max_frame_bytes,
            self._reactor,
            self.connections,
            self._complaints,
            self.traffic.setdefault(listener_name, ListenerTraffic()),
            self._metrics,
        )
        factory = KafkaFactory(shared, self._read_ahead, self._turn_away)
        try:
            listening = self._network.listen(port, factory, ACCEPT_BACKLOG, host)
        except CannotListenError as problem:
            reason = explain_bind_failure(host, port, problem.socketError)
            raise ListenError(f"listener {listener_name}: {reason}") from None
        self._ports[listener_name] = listening
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

    def finish(self) -> None:
        """Let every connection answer its requests in flight and close."""
        if self._sweep.running:
            self._sweep.stop()
        for connection in list(self.connections):
            connection.finish()
