"""Requests by API and version: how many, how long, with which errors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafkacompat.metrics.histogram import add_counts, find_bound_s, find_quantile_s, list_cumulative
from kafkacompat.metrics.recent import RecentCounts
from kafkacompat.metrics.requests import RequestFigures, RequestKind, RequestMetrics, count_waiting
from kafkacompat.monitoring.collectors import Collected
from kafkacompat.monitoring.table import Family, make_metric
from kafkacompat.wire.apis import find_api_name
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.headers import FETCH_KEY, PRODUCE_KEY

if TYPE_CHECKING:
    from kafkacompat.metrics.histogram import Histogram
    from kafkacompat.monitoring.observed import Observed

PREFIX = "kafka_network_requestmetrics_"
PARTS = {
    "totaltimems": ("prompt", "total"),
    "requestqueuetimems": ("queue",),
    "localtimems": ("prompt", "local"),
    "remotetimems": ("remote",),
    "responsequeuetimems": ("response_queue",),
    "responsesendtimems": ("send",),
}
"""Kafka's name of each part of a request's time, and the histograms of `RequestFigures` that have it."""
QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
OCTAVES = (6, 8, 10, 12, 14, 16, 18, 20, 22, 24)
"""Bounds of the histograms: 64 µs, four times as much, and so on to 17 s."""
DELAYED = {"Produce": PRODUCE_KEY, "Fetch": FETCH_KEY}


def name_api(api_key: int) -> str:
    """Return an API's name as Kafka writes it."""
    return find_api_name(api_key).title().replace("_", "")


def name_kinds(kind: RequestKind) -> tuple[str, ...]:
    """Return the names that requests of a kind count under: a Fetch has two, as in Kafka."""
    name = name_api(kind.api_key)
    if kind.api_key != FETCH_KEY:
        return (name,)
    return name, "FetchFollower" if kind.is_of_replica else "FetchConsumer"


class RequestCollector:
    """Collects `RequestMetrics`; quantiles are those since an earlier scrape."""

    def __init__(self, requests: RequestMetrics, observed: Observed) -> None:
        self._figures = requests.figures
        self._errors = requests.errors
        self._observed = observed
        self._recent = RecentCounts()

    def collect(self) -> Collected:
        """Yield the metrics."""
        by_name: dict[str, list[tuple[RequestKind, RequestFigures]]] = defaultdict(list)
        for kind, figures in list(self._figures.items()):
            for name in name_kinds(kind) if figures.count else ():
                by_name[name].append((kind, figures))
        yield from self._collect_counts(by_name)
        for part in PARTS:
            yield self._collect_part(part, by_name).metric
            yield None
        yield self._collect_durations(by_name).metric
        yield from self._collect_waiting()

    def _collect_counts(self, by_name: Mapping[str, list[tuple[RequestKind, RequestFigures]]]) -> Collected:
        requests, errors = Family(f"{PREFIX}requests"), Family(f"{PREFIX}errors")
        for name, kinds in by_name.items():
            versions: Counter[int] = Counter()
            for kind, figures in kinds:
                versions[kind.version] += figures.count
            for version, count in sorted(versions.items()):
                requests.add(count, request=name, version=version)
        codes: Counter[tuple[str, int]] = Counter()
        for (api_key, is_of_replica, code), count in list(self._errors.items()):
            for name in name_kinds(RequestKind(api_key, 0, is_of_replica)):
                codes[name, code] += count
        for (name, code), count in sorted(codes.items()):
            errors.add(count, request=name, error=name_error(code))
        yield requests.metric
        yield errors.metric

    def _collect_part(self, part: str, by_name: Mapping[str, list[tuple[RequestKind, RequestFigures]]]) -> Family:
        family, now_s = Family(PREFIX + part), self._observed.clock.seconds()
        for name, kinds in by_name.items():
            histograms: list[Histogram] = [getattr(figures, own) for _, figures in kinds for own in PARTS[part]]
            count = sum(figures.count for _, figures in kinds)
            counts = add_counts(histograms)
            # The requests that did not wait in this part. Their number is not quite exact, as some requests stand for others.
            counts[0] += max(0, count - sum(counts))
            recent = self._recent.since_earlier((part, name), counts, now_s)
            for quantile in QUANTILES:
                family.add(find_quantile_s(recent, float(quantile)) * 1000, request=name, quantile=quantile)
            family.add(count, "_count", request=name)
            family.add(sum(histogram.sum_s for histogram in histograms) * 1000, "_sum", request=name)
        return family

    def _collect_durations(self, by_name: Mapping[str, list[tuple[RequestKind, RequestFigures]]]) -> Family:
        family = Family("kafkacompat_request_duration_seconds")
        for name, kinds in by_name.items():
            if name != name_api(kinds[0][0].api_key):
                continue
            by_version: dict[int, list[Histogram]] = defaultdict(list)
            for kind, figures in kinds:
                by_version[kind.version] += (figures.prompt, figures.total)
            for version, histograms in sorted(by_version.items()):
                add_histogram(family, histograms, request=name, version=version)
        return family

    def _collect_waiting(self) -> Collected:
        connections = self._observed.server.connections
        waiting = count_waiting(connection.watch for connection in connections if connection.watch is not None)
        in_flight = Family("kafkacompat_requests_in_flight")
        for api_key, count in sorted(waiting.items()):
            in_flight.add(count, request=name_api(api_key))
        yield in_flight.metric
        delayed = Family("kafka_server_delayedoperationpurgatory_purgatorysize")
        for name, api_key in DELAYED.items():
            delayed.add(waiting[api_key], delayedOperation=name)
        yield delayed.metric
        queued = sum(connection.waiting_requests for connection in connections)
        yield make_metric("kafka_network_requestchannel_requestqueuesize", queued)


def name_error(code: int) -> str:
    """Return the name of an error code."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def add_histogram(family: Family, histograms: Iterable[Histogram], **labels: object) -> None:
    """Add the samples of a histogram."""
    histograms = list(histograms)
    counts = add_counts(histograms)
    for bound_s, count in list_cumulative(counts, OCTAVES):
        family.add(count, "_bucket", **labels, le=f"{bound_s:.6f}")
    family.add(sum(counts), "_bucket", **labels, le="+Inf")
    family.add(sum(counts), "_count", **labels)
    family.add(sum(histogram.sum_s for histogram in histograms), "_sum", **labels)


def find_longest_s(counts: list[int]) -> float:
    """Return the upper bound of the last bucket with a duration; 0 without any."""
    return next((find_bound_s(bucket) for bucket in reversed(range(len(counts))) if counts[bucket]), 0.0)
