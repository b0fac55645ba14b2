"""The process: turns of the reactor, queues of workers and disks, memory, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector

from kafkacompat import __version__
from kafkacompat.metrics.histogram import MICROSECONDS
from kafkacompat.metrics.recent import RecentCounts
from kafkacompat.monitoring.collectors import Collected
from kafkacompat.monitoring.collectors.requests import add_histogram, find_longest_s
from kafkacompat.monitoring.table import Family, make_metric

if TYPE_CHECKING:
    from kafkacompat.metrics.turns import ReactorTurns
    from kafkacompat.monitoring.observed import Observed

IDLE_NAMES = (
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
)


class BrokerProcessCollector:
    """Collects the state of the process; ``turns`` has the reactor's turns, None if they cannot be measured."""

    def __init__(self, observed: Observed, turns: ReactorTurns | None) -> None:
        self._observed = observed
        self._turns = turns
        self._recent = RecentCounts()
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def collect(self) -> Collected:
        """Yield the metrics."""
        if self._turns is not None:
            yield from self._collect_turns(self._turns)
        for name, queues in (("worker", self._observed.workers), ("disk", self._observed.disks)):
            family = Family(f"kafkacompat_{name}_queue_length")
            for owner, queue in queues.items():
                family.add(queue.pending, **{name: owner})
            yield family.metric
        yield from self._registry.collect()
        yield make_metric("kafkacompat_build_info", 1, version=__version__)

    def _collect_turns(self, turns: ReactorTurns) -> Collected:
        family, lengths = Family("kafkacompat_reactor_turn_seconds"), turns.lengths
        add_histogram(family, [lengths])
        yield family.metric
        now_s = self._observed.clock.seconds()
        recent = self._recent.since_earlier("turns", lengths.counts, now_s)
        yield make_metric("kafkacompat_reactor_longest_turn_seconds", find_longest_s(recent))
        totals_us = [int(seconds * MICROSECONDS) for seconds in (lengths.sum_s, now_s - turns.begun_s)]
        busy_us, elapsed_us = self._recent.since_earlier("busy", totals_us, now_s)
        idle = min(1.0, max(0.0, 1 - busy_us / max(elapsed_us, 1)))
        for name in IDLE_NAMES:
            yield make_metric(name, idle)
