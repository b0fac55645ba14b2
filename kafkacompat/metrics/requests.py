"""How long requests take and which errors they get, by API and version.

A request is received, waits in the queue of its connection, is handled (local), perhaps waits for data, replicas or other
brokers (remote), waits until the responses before it have left, and is sent. These are the parts that Kafka reports.

Every request is counted. Every request that waits for something is measured, and so are the first `MEASURED` of each kind in
`WINDOW_S`; of the others one in `EVERY` is measured and stands for all of them. (Kafka's histograms are samples, too.)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.metrics.errors import FINDERS, compile_error_finder
from kafkacompat.metrics.histogram import Histogram
from kafkacompat.wire.headers import API_VERSIONS_KEY, FETCH_KEY, PRODUCE_KEY

if TYPE_CHECKING:
    from kafkacompat.wire.connection import IncomingRequest
    from kafkacompat.wire.schema import Response

REPLICA_STATE_VERSION = 15
PROMPT_S = 0.000_1
"""A shorter wait before a request is handled is not reported as one."""
MEASURED = 10
WINDOW_S = 0.1
EVERY = 16
UNKNOWN_VERSION = -1
"""The version of requests whose version is not served: a client can send all there are of ApiVersions."""


class RequestKind(NamedTuple):
    """The requests that are counted together; ``is_of_replica`` marks a follower's Fetch."""

    api_key: int
    version: int
    is_of_replica: bool


class RequestFigures:
    """The requests of one kind.

    Most requests are answered at once: ``prompt`` has their times from the arrival to the end, which are local. The other
    histograms have the requests that waited anywhere; a part in which one did not wait is not recorded. ``free`` requests are
    measured before others are skipped.
    """

    __slots__ = (
        "count",
        "free",
        "kind",
        "local",
        "prompt",
        "queue",
        "refill_s",
        "remote",
        "response_queue",
        "send",
        "skipped",
        "total",
    )

    def __init__(self, kind: RequestKind) -> None:
        self.kind = kind
        self.count = 0
        self.free = MEASURED
        self.refill_s = 0.0
        self.skipped = 0
        self.prompt = Histogram()
        self.queue = Histogram()
        self.local = Histogram()
        self.remote = Histogram()
        self.response_queue = Histogram()
        self.send = Histogram()
        self.total = Histogram()

    def finish(self, trace: RequestTrace, sent_s: float) -> None:
        """Record a request whose response has left, or that needs none."""
        received_s, started_s, weight = trace.received_s, trace.started_s, trace.weight
        if not trace.answered_s and started_s - received_s < PROMPT_S:
            self.prompt.record(sent_s - received_s, weight)
            return
        answered_s = trace.answered_s or sent_s
        self.queue.record(started_s - received_s, weight)
        if trace.handled_s:
            self.local.record(trace.handled_s - started_s, weight)
            self.remote.record(answered_s - trace.handled_s, weight)
        else:
            self.local.record(answered_s - started_s, weight)
        if trace.is_early:
            self.response_queue.record(sent_s - answered_s, weight)
        elif sent_s > answered_s:
            self.send.record(sent_s - answered_s, weight)
        self.total.record(sent_s - received_s, weight)


class RequestTrace:
    """The times of one request in seconds.

    ``handled_s`` is the time when the handler returned without a response, ``answered_s`` that of the response; both are 0 for a
    request that is answered at once. ``is_early`` marks a response that waits for others. ``number`` counts the connection's
    requests; ``weight`` is the number of requests that this one stands for.
    """

    handled_s = 0.0
    answered_s = 0.0
    is_answered = False
    is_early = False

    def __init__(self, figures: RequestFigures, received_s: float, started_s: float, weight: int, number: int) -> None:
        self.figures = figures
        self.received_s = received_s
        self.started_s = started_s
        self.weight = weight
        self.number = number


class RequestMetrics:
    """The figures of all requests; ``clock_s`` returns the time in seconds.

    ``errors`` has the number of error codes in responses, by API key, whether the request is a follower's Fetch, and code. Produce
    notes its errors by itself (`note_produce_error`): looking for them in each response takes time.
    """

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self.clock_s = clock_s
        self.figures: dict[RequestKind, RequestFigures] = {}
        self.errors: Counter[tuple[int, bool, int]] = Counter()

    def watch(self) -> ConnectionWatch:
        """Return what measures the requests of a new connection."""
        return ConnectionWatch(self)

    def find_figures(self, kind: RequestKind) -> RequestFigures:
        """Return the figures of a kind of requests."""
        figures = self.figures.get(kind)
        if figures is None:
            figures = self.figures[kind] = RequestFigures(kind)
        return figures

    def note_produce_error(self, code: int) -> None:
        """Count the error of one batch."""
        self.errors[PRODUCE_KEY, False, code] += 1


class ConnectionWatch:
    """Measures the requests of one connection, whose responses leave in the order of the requests.

    All of this is called for every request, so it is written for speed. ``is_due`` tells the connection to call `note_sent`.
    """

    __slots__ = ("_begun", "_figures", "_metrics", "_received_s", "_started_s", "_unsent", "is_due", "traces")

    def __init__(self, metrics: RequestMetrics) -> None:
        self._metrics = metrics
        self._figures: dict[int, RequestFigures] = {}
        self._begun = 0
        self._received_s = self._started_s = 0.0
        self._unsent: list[RequestTrace] = []
        self.traces: deque[RequestTrace] = deque()
        """The measured requests whose responses have not been handed to the socket."""
        self.is_due = False

    def begin(self, incoming: IncomingRequest, received_s: float, started_s: float) -> None:
        """Note that the handling of a request begins."""
        figures = self._figures.get(incoming.api_key)
        version = incoming.api_version
        if incoming.body is None and incoming.api_key == API_VERSIONS_KEY:
            version = UNKNOWN_VERSION
        if figures is None or figures.kind.version != version:
            kind = RequestKind(incoming.api_key, version, False)
            figures = self._figures[incoming.api_key] = self._metrics.find_figures(kind)
        figures.count += 1
        self._begun += 1
        self._received_s, self._started_s = received_s, started_s
        weight = 1
        if figures.free:
            figures.free -= 1
        elif started_s >= figures.refill_s:
            figures.free, figures.refill_s = MEASURED - 1, started_s + WINDOW_S
        elif figures.skipped < EVERY - 1:
            figures.skipped += 1
            return
        else:
            figures.skipped, weight = 0, EVERY
        incoming.trace = trace = RequestTrace(figures, received_s, started_s, weight, self._begun)
        self.traces.append(trace)

    def note_wait(self, incoming: IncomingRequest) -> None:
        """Note that the handler of the request that has begun last has returned, and that the response comes later."""
        trace: RequestTrace | None = incoming.trace
        if trace is None:
            figures = self._figures[incoming.api_key]
            incoming.trace = trace = RequestTrace(figures, self._received_s, self._started_s, 1, self._begun)
            self.traces.append(trace)
        trace.weight = 1
        trace.handled_s = self._metrics.clock_s()

    def note_answer(self, incoming: IncomingRequest, response: Response | None) -> None:
        """Note the response of a request, whose body is still there."""
        trace: RequestTrace | None = incoming.trace
        if incoming.api_key != PRODUCE_KEY:
            self._note_errors(incoming, response, trace)
        if trace is not None:
            self.is_due = trace.is_answered = True
            if trace.handled_s:
                trace.answered_s = self._metrics.clock_s()

    def _note_errors(self, incoming: IncomingRequest, response: Response | None, trace: RequestTrace | None) -> None:
        api_key, to_replica = incoming.api_key, False
        if api_key == FETCH_KEY and is_of_replica(incoming):
            to_replica = True
            kind = RequestKind(FETCH_KEY, incoming.api_version, False)
            self._metrics.find_figures(kind).count -= 1
            figures = self._metrics.find_figures(kind._replace(is_of_replica=True))
            figures.count += 1
            if trace is not None:
                trace.figures = figures
        if response is not None:
            find_errors = FINDERS.get(type(response)) or compile_error_finder(type(response))
            for code in find_errors(response):
                self._metrics.errors[api_key, to_replica, code] += 1

    def note_sent(self, in_flight: int, is_drained: bool) -> None:
        """Note that all responses but the last *in_flight* were handed to the socket, and whether it has taken all of them."""
        traces, unsent, left = self.traces, self._unsent, self._begun - in_flight
        now_s = self._metrics.clock_s()
        while traces and traces[0].number <= left:
            trace = traces.popleft()
            if not is_drained:
                trace.answered_s = trace.answered_s or now_s
            unsent.append(trace)
        if is_drained:
            for trace in unsent:
                trace.figures.finish(trace, now_s)
            unsent.clear()
        self.is_due = bool(unsent)
        for trace in traces:
            if trace.is_answered:
                self.is_due = trace.is_early = True
                trace.answered_s = trace.answered_s or now_s


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
