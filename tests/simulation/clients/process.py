"""The process of one client: its clock, its connections, its view of the cluster and its history."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.backoff import Backoff
from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.errors import RequestFailedError
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.history.events import Event
from kafkacompat.timers import Clock
from kafkacompat.wire.client_connection import VersionCap
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Request
from tests.fakes.memory_network import MemoryHost
from tests.fakes.process_clock import ProcessClock
from tests.simulation.clients.cluster_view import ClusterView
from tests.simulation.clients.errors import RETRIABLE
from tests.simulation.clients.settings import ClientSettings

HistorySink = Callable[[Event], object]
CONTROL = "control"


class ClientProcess:
    """What every client has. ``failures`` are the exceptions of its tasks that nothing handled: defects of the client.

    ``is_coordinator(group, node)`` says whether a broker coordinates a group by what the run knows of the cluster; see `fetch_committed`.
    *bootstrap* are (host, port) of some brokers. After `kill` nothing of the client runs any more, and a new process may use the same
    host of the network.
    """

    def __init__(
        self,
        clock: Clock,
        network: MemoryHost,
        rng: Random,
        bootstrap: Sequence[tuple[str, int]],
        sink: HistorySink,
        name: str,
        settings: ClientSettings,
        cap: VersionCap = lambda _: None,
    ) -> None:
        self.clock = ProcessClock(clock)
        self.rng = rng
        self.name = name
        self.settings = settings
        self.failures: list[Failure] = []
        self.is_stopping = False
        self.is_coordinator: Callable[[str, int], bool] = lambda group, node: True
        self._network = network
        self._sink = sink
        connection_settings = ConnectionSettings(
            client_id=name,
            setup_timeout_s=settings.request_timeout_s,
            reconnect_backoff_s=settings.reconnect_backoff_s,
            max_reconnect_backoff_s=settings.max_reconnect_backoff_s,
            cap=cap,
        )
        self._connections = BrokerConnections(connection_settings, network, self.clock, rng)
        self.cluster = ClusterView(self.clock, rng, bootstrap, settings, self.send)

    # Time and tasks

    def now_ns(self) -> int:
        """Return the time in nanoseconds, as in the events of a history."""
        return int(self.clock.seconds() * 1_000_000_000)

    def sleep(self, seconds: float) -> Deferred[None]:
        """Return a Deferred that fires after some time."""
        waiting: Deferred[None] = Deferred()
        self.clock.callLater(seconds, waiting.callback, None)
        return waiting

    def spawn(self, work: Coroutine[Deferred[Any], Any, None]) -> Deferred[None]:
        """Run a task; an exception that it raises is kept in ``failures``."""
        task: Deferred[None] = Deferred.fromCoroutine(work)
        task.addErrback(self.note_crash)
        return task

    def note_crash(self, failure: Failure) -> None:
        """Keep an exception that nothing handled."""
        self.failures.append(failure)

    def finish(self, work: Deferred[None]) -> Deferred[None]:
        """Let the client's main task end, and close the connections; fires when that is done."""
        self.is_stopping = True
        return work.addCallback(lambda _: self.close())

    def close(self) -> None:
        """Close the connections; nothing of the client runs afterwards."""
        self.is_stopping = True
        self._connections.close()
        self.clock.kill()

    def kill(self) -> None:
        """End the process without a word to anybody."""
        self.is_stopping = True
        self.clock.kill()
        self._network.kill()

    # History

    def record(self, event: Event) -> None:
        """Add an event to the history."""
        self._sink(event)

    # Requests

    def send(
        self, broker: BrokerAddress, request: Request, purpose: str = CONTROL, longer_s: float = 0.0
    ) -> Deferred[Any]:
        """Send a request that may take *longer_s* more than others; see `BrokerConnections.request`."""
        timeout_s = self.settings.request_timeout_s + longer_s
        return self._connections.request(broker, purpose, request, timeout_s=timeout_s)

    async def try_send(
        self, broker: BrokerAddress, request: Request, purpose: str = CONTROL, longer_s: float = 0.0
    ) -> Any:
        """Send a request, and return its response; raises KafkaError with NETWORK_EXCEPTION if there is none."""
        try:
            return await self.send(broker, request, purpose, longer_s)
        except RequestFailedError as problem:
            self.cluster.note_failure(broker)
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(problem)) from problem

    async def ask_any(
        self, request: Request, find_error: Callable[[Any], int] = lambda response: response.error_code
    ) -> Any:
        """Send a request to any broker until one answers without a retriable error; raises KafkaError for others."""
        backoff = self.make_backoff()
        while True:
            try:
                response = await self.try_send(self.cluster.choose_broker(), request)
                code = find_error(response)
            except KafkaError as problem:
                code = problem.code
            if not code:
                return response
            if code not in RETRIABLE:
                raise KafkaError(ErrorCode(code), type(request).__name__)
            await self.sleep(backoff.next_s())

    def make_backoff(self) -> Backoff:
        """Return the waits between the attempts of one request."""
        return Backoff(self.settings.retry_backoff_s, self.settings.max_retry_backoff_s, self.rng)
