"""How long requests take and which errors they get, by API and version.

A request is received, waits in the queue of its connection, is handled (local), perhaps waits for data, replicas or other
brokers (remote), waits until the responses before it have left, and is sent. These are the parts that Kafka reports.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.metrics.errors import compile_error_finder
from kafkacompat.metrics.histogram import Histogram

if TYPE_CHECKING:
    from kafkacompat.wire.connection import IncomingRequest
    from kafkacompat.wire.schema import Response

FETCH_KEY = 1
REPLICA_STATE_VERSION = 15


class RequestKind(NamedTuple):
    """The requests that are counted together; ``is_of_replica`` marks a follower's Fetch."""

    api_key: int
    version: int
    is_of_replica: bool


class RequestFigures:
    """The requests of one kind.

    A part without a duration is not recorded: ``count`` is the number of all requests, so the others took no time. ``errors``
    has the number of error codes in responses.
    """

    __slots__ = ("count", "errors", "local", "queue", "remote", "response_queue", "send", "total")

    def __init__(self) -> None:
        self.count = 0
        self.queue = Histogram()
        self.local = Histogram()
        self.remote = Histogram()
        self.response_queue = Histogram()
        self.send = Histogram()
        self.total = Histogram()
        self.errors: Counter[int] = Counter()


class RequestTrace:
    """The times of one request in seconds; ``handled_s`` is 0 unless the response came later than the handler returned."""

    __slots__ = (
        "answered_s",
        "api_key",
        "handled_s",
        "is_of_replica",
        "received_s",
        "started_s",
        "version",
        "was_early",
    )

    def __init__(self, api_key: int, version: int, received_s: float, started_s: float) -> None:
        self.api_key = api_key
        self.version = version
        self.received_s = received_s
        self.started_s = started_s
        self.handled_s = 0.0
        self.answered_s = 0.0
        self.was_early = False
        self.is_of_replica = False


class RequestMetrics:
    """The figures of all requests; ``clock_s`` returns the time in seconds."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self.clock_s = clock_s
        self.figures: dict[RequestKind | tuple[int, int, bool], RequestFigures] = {}

    def watch(self) -> ConnectionWatch:
        """Return what measures the requests of a new connection."""
        return ConnectionWatch(self)

    def find_figures(self, kind: tuple[int, int, bool]) -> RequestFigures:
        """Return the figures of a kind of requests."""
        figures = self.figures.get(kind)
        if figures is None:
            figures = self.figures[RequestKind(*kind)] = RequestFigures()
        return figures

    def finish(self, trace: RequestTrace, sent_s: float) -> None:
        """Count a request whose response has left, or that needs none."""
        figures = self.find_figures((trace.api_key, trace.version, trace.is_of_replica))
        started_s, answered_s = trace.started_s, trace.answered_s
        figures.count += 1
        figures.queue.record(started_s - trace.received_s)
        if trace.handled_s:
            figures.local.record(trace.handled_s - started_s)
            figures.remote.record(answered_s - trace.handled_s)
        else:
            figures.local.record(answered_s - started_s)
        part = figures.response_queue if trace.was_early else figures.send
        part.record(sent_s - answered_s)
        figures.total.record(sent_s - trace.received_s)


class ConnectionWatch:
    """Measures the requests of one connection, which are sent in the order in which they begin."""

    __slots__ = ("_metrics", "_unsent", "traces")

    def __init__(self, metrics: RequestMetrics) -> None:
        self._metrics = metrics
        self.traces: deque[RequestTrace] = deque()
        """The requests whose responses have not been handed to the socket."""
        self._unsent: list[RequestTrace] = []
        """The requests whose responses the socket has not taken yet."""

    def begin(self, incoming: IncomingRequest, received_s: float, started_s: float) -> None:
        """Note that the handling of a request begins."""
        trace = RequestTrace(incoming.api_key, incoming.api_version, received_s, started_s)
        incoming.trace = trace
        self.traces.append(trace)

    def note_wait(self, incoming: IncomingRequest) -> None:
        """Note that the handler of a request has returned, and that the response comes later."""
        incoming.trace.handled_s = self._metrics.clock_s()

    def note_answer(self, incoming: IncomingRequest, response: Response | None) -> None:
        """Note the response of a request, whose body is still there."""
        trace: RequestTrace = incoming.trace
        trace.answered_s = self._metrics.clock_s()
        trace.was_early = trace is not self.traces[0]
        if trace.api_key == FETCH_KEY:
            trace.is_of_replica = is_of_replica(incoming)
        if response is not None:
            response_type: Any = type(response)
            errors = compile_error_finder(response_type)(response)
            if errors:
                kind = trace.api_key, trace.version, trace.is_of_replica
                self._metrics.find_figures(kind).errors.update(errors)

    def note_sent(self, in_flight: int, is_drained: bool) -> None:
        """Note that all responses but the last *in_flight* were handed to the socket, and whether it has taken all of them."""
        traces, unsent = self.traces, self._unsent
        while len(traces) > in_flight:
            unsent.append(traces.popleft())
        if unsent and is_drained:
            sent_s = self._metrics.clock_s()
            for trace in unsent:
                self._metrics.finish(trace, sent_s)
            unsent.clear()


def is_of_replica(incoming: IncomingRequest) -> bool:
    """Return whether a Fetch comes from a follower."""
    body: Any = incoming.body
    if body is None:
        return False
    replica = body.replica_state if incoming.api_version >= REPLICA_STATE_VERSION else body
    is_follower: bool = replica.replica_id >= 0
    return is_follower


def count_waiting(watches: Iterable[ConnectionWatch]) -> Counter[int]:
    """Return how many requests wait for an answer, by API key."""
    return Counter(
        trace.api_key for watch in watches for trace in watch.traces if trace.handled_s and not trace.answered_s
    )
