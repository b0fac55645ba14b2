"""Turning metrics into text, a few samples at a time, so that requests are served in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import TypeAlias

from prometheus_client import exposition
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as write_openmetrics
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from kafkacompat.monitoring.collectors import Collected
from kafkacompat.timers import Clock, yield_in_turns

IN_A_TURN = 250
"""Samples, at some ten microseconds each, between two turns of others."""
PAUSE_S = 0.2
"""The least time between two scrapes: all that come meanwhile get the result of the next one."""
END = b"# EOF\n"

Collect: TypeAlias = Callable[[], Collected]


class Format(Enum):
    """The formats by their content types."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

    @classmethod
    def choose(cls, accept: bytes) -> Format:
        """Return the format for a client with this Accept header: OpenMetrics if it is named."""
        return cls.OPENMETRICS if b"application/openmetrics-text" in accept else cls.TEXT


class _Registry:
    """What prometheus-client writes: here a part of one metric."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        """Return the metric."""
        return [self._metric]


def write_metrics(collects: Iterable[Collect], form: Format) -> Iterator[bytes | None]:
    """Yield the text of the metrics in pieces, or None where others may have a turn."""
    for collect in collects:
        for metric in collect():
            if metric is None:
                yield None
                continue
            for number, part in enumerate(_split_metric(metric)):
                text = _write(part, form)
                yield text if number == 0 else _without_head(text)
    if form is Format.OPENMETRICS:
        yield END


def _write(metric: Metric, form: Format) -> bytes:
    write = write_openmetrics if form is Format.OPENMETRICS else exposition.generate_latest
    text: bytes = write(_Registry(metric))
    return text.removesuffix(END)


def _split_metric(metric: Metric) -> Iterator[Metric]:
    samples = metric.samples
    for start in range(0, max(len(samples), 1), IN_A_TURN):
        part = Metric(metric.name, metric.documentation, metric.type)
        part.samples = samples[start : start + IN_A_TURN]
        yield part


def _without_head(text: bytes) -> bytes:
    """Drop the lines that describe a metric, which its first part has."""
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"# "))


class Scraper:
    """Makes one scrape at a time, in turns of the reactor; all that wait for the same format get the same text.

    ``list_collects`` returns the collectors of a scrape.
    """

    def __init__(self, clock: Clock, list_collects: Callable[[], list[Collect]]) -> None:
        self._clock = clock
        self._list_collects = list_collects
        self._waiting: dict[Format, list[Deferred[bytes]]] = {}
        self._is_running = False
        self._may_begin_s = 0.0

    def scrape(self, form: Format) -> Deferred[bytes]:
        """Return the metrics as text, from a scrape that begins after this call. The Deferred must not be cancelled."""
        result: Deferred[bytes] = Deferred()
        self._waiting.setdefault(form, []).append(result)
        if not self._is_running:
            self._is_running = True
            Deferred.fromCoroutine(self._run())
        return result

    async def _run(self) -> None:
        while self._waiting:
            await deferLater(self._clock, max(0.0, self._may_begin_s - self._clock.seconds()))  # type: ignore[arg-type]
            form = next(iter(self._waiting))
            served = self._waiting.pop(form)
            try:
                text = await self._collect(form)
            except Exception as problem:
                for result in served:
                    result.errback(problem)
            else:
                for result in served:
                    result.callback(text)
            self._may_begin_s = self._clock.seconds() + PAUSE_S
        self._is_running = False

    async def _collect(self, form: Format) -> bytes:
        pieces = write_metrics(self._list_collects(), form)
        return b"".join([piece async for piece in yield_in_turns(self._clock, pieces) if piece is not None])
