"""How long requests take and which errors they get, by API and version.

A request is received, waits in the queue of its connection, is handled (local), perhaps waits for data, replicas or other
brokers (remote), waits until the responses before it have left, and is sent. These are the parts that Kafka reports.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.metrics.errors import FINDERS, compile_error_finder
from kafkacompat.metrics.histogram import Histogram

if TYPE_CHECKING:
    from kafkacompat.wire.connection import IncomingRequest
    from kafkacompat.wire.schema import Response

FETCH_KEY = 1
REPLICA_STATE_VERSION = 15
PROMPT_S = 0.000_1
"""A shorter wait before a request is handled is not reported as one."""


class RequestKind(NamedTuple):
    """The requests that are counted together; ``is_of_replica`` marks a follower's Fetch."""

    api_key: int
    version: int
    is_of_replica: bool


class RequestFigures:
    """The requests of one kind.

    Most requests are answered at once: ``prompt`` has their times from the arrival to the end, which are local. The other
    histograms have the requests that waited anywhere; a part in which one did not wait is not recorded. ``errors`` has the number
    of error codes in responses.
    """

    __slots__ = ("errors", "kind", "local", "prompt", "queue", "remote", "response_queue", "send", "total")

    def __init__(self, kind: RequestKind) -> None:
        self.kind = kind
        self.prompt = Histogram()
        self.queue = Histogram()
        self.local = Histogram()
        self.remote = Histogram()
        self.response_queue = Histogram()
        self.send = Histogram()
        self.total = Histogram()
        self.errors: Counter[int] = Counter()

    @property
    def count(self) -> int:
        """How many requests there were."""
        return self.prompt.count + self.total.count

    def finish(self, trace: RequestTrace, sent_s: float) -> None:
        """Count a request whose response has left, or that needs none."""
        received_s, started_s = trace.received_s, trace.started_s
        if not trace.answered_s and started_s - received_s < PROMPT_S:
            self.prompt.record(sent_s - received_s)
            return
        answered_s = trace.answered_s or sent_s
        self.queue.record(started_s - received_s)
        if trace.handled_s:
            self.local.record(trace.handled_s - started_s)
            self.remote.record(answered_s - trace.handled_s)
        else:
            self.local.record(answered_s - started_s)
        if trace.is_early:
            self.response_queue.record(sent_s - answered_s)
        elif sent_s > answered_s:
            self.send.record(sent_s - answered_s)
        self.total.record(sent_s - received_s)


class RequestTrace:
    """The times of one request in seconds.

    ``handled_s`` is the time when the handler returned without a response, ``answered_s`` that of the response; both are 0 for a
    request that is answered at once. ``is_early`` marks a response that waits for others.
    """

    handled_s = 0.0
    answered_s = 0.0
    is_early = False

    def __init__(self, figures: RequestFigures, received_s: float, started_s: float) -> None:
        self.figures = figures
        self.received_s = received_s
        self.started_s = started_s


class RequestMetrics:
    """The figures of all requests; ``clock_s`` returns the time in seconds."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self.clock_s = clock_s
        self.figures: dict[RequestKind, RequestFigures] = {}

    def watch(self) -> ConnectionWatch:
        """Return what measures the requests of a new connection."""
        return ConnectionWatch(self)

    def find_figures(self, kind: RequestKind) -> RequestFigures:
        """Return the figures of a kind of requests."""
        figures = self.figures.get(kind)
        if figures is None:
            figures = self.figures[kind] = RequestFigures(kind)
        return figures


class ConnectionWatch:
    """Measures the requests of one connection, whose responses leave in the order of the requests.

    All of this is called for every request, so it is written for speed. ``is_due`` tells the connection to call `note_sent`.
    """

    __slots__ = ("_figures", "_metrics", "_unsent", "is_due", "traces")

    def __init__(self, metrics: RequestMetrics) -> None:
        self._metrics = metrics
        self._figures: dict[int, RequestFigures] = {}
        self._unsent: list[RequestTrace] = []
        self.traces: deque[RequestTrace] = deque()
        """The requests whose responses have not been handed to the socket."""
        self.is_due = False

    def begin(self, incoming: IncomingRequest, received_s: float, started_s: float) -> None:
        """Note that the handling of a request begins."""
        figures = self._figures.get(incoming.api_key)
        if figures is None or figures.kind.version != incoming.api_version:
            kind = RequestKind(incoming.api_key, incoming.api_version, False)
            figures = self._figures[incoming.api_key] = self._metrics.find_figures(kind)
        incoming.trace = trace = RequestTrace(figures, received_s, started_s)
        self.traces.append(trace)

    def note_wait(self, incoming: IncomingRequest) -> None:
        """Note that the handler of a request has returned, and that the response comes later."""
        incoming.trace.handled_s = self._metrics.clock_s()

    def note_answer(self, incoming: IncomingRequest, response: Response | None) -> None:
        """Note the response of a request, whose body is still there; nothing is noted of one without a `begin`."""
        trace: RequestTrace | None = incoming.trace
        if trace is None:
            return
        self.is_due = True
        if trace is not self.traces[0]:
            trace.is_early = True
            trace.answered_s = self._metrics.clock_s()
        elif trace.handled_s:
            trace.answered_s = self._metrics.clock_s()
        if incoming.api_key == FETCH_KEY and is_of_replica(incoming):
            trace.figures = self._metrics.find_figures(trace.figures.kind._replace(is_of_replica=True))
        if response is not None:
            find_errors = FINDERS.get(type(response)) or compile_error_finder(type(response))
            errors = find_errors(response)
            if errors:
                trace.figures.errors.update(errors)

    def note_sent(self, in_flight: int, is_drained: bool) -> None:
        """Note that all responses but the last *in_flight* were handed to the socket, and whether it has taken all of them."""
        traces, unsent = self.traces, self._unsent
        now_s = self._metrics.clock_s()
        if is_drained:
            for trace in unsent:
                trace.figures.finish(trace, now_s)
            unsent.clear()
            while len(traces) > in_flight:
                trace = traces.popleft()
                trace.figures.finish(trace, now_s)
        else:
            while len(traces) > in_flight:
                trace = traces.popleft()
                trace.answered_s = trace.answered_s or now_s
                unsent.append(trace)
        self.is_due = bool(unsent)


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
        trace.figures.kind.api_key
        for watch in watches
        for trace in watch.traces
        if trace.handled_s and not trace.answered_s
    )
