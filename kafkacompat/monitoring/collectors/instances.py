"""What instances use of this broker.

The label is ``tenant``, as Prometheus adds a label ``instance`` of its own to each series.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafkacompat.metrics.places import OTHER, SeriesPlaces
from kafkacompat.monitoring.collectors import Collected
from kafkacompat.monitoring.table import Family

if TYPE_CHECKING:
    from kafkacompat.monitoring.observed import Observed

PREFIX = "kafkacompat_instance_"
METRICS = {
    "produced_bytes": "produced_bytes",
    "produced_records": "produced_records",
    "fetched_bytes": "fetched_bytes",
    "stored_bytes": "stored_bytes",
    "total_stored_bytes": "total_stored_bytes",
    "storage_full": "is_storage_full",
    "topics": "topics",
    "partitions": "partitions",
    "groups": "groups",
    "connections": "connections",
}
"""The figure of each metric."""
IN_A_TURN = 20
"""Instances, each with a few partitions, between two turns of others."""


class InstanceCollector:
    """Collects `UsageFigures`; instances beyond the limit of series share one."""

    def __init__(self, observed: Observed, limit: int) -> None:
        self._observed = observed
        self._places: SeriesPlaces[str] = SeriesPlaces(limit)

    def collect(self) -> Collected:
        """Yield the metrics; none without instances."""
        figures = self._observed.find_instance_usage()
        if figures is None:
            return
        names = figures.list_names()
        families = {metric: Family(PREFIX + metric) for metric in METRICS}
        throttled = Family(f"{PREFIX}throttle_seconds")
        others: Counter[str] = Counter()
        self._places.keep(set(names))
        for number, name in enumerate(names, 1):
            usage = figures.read(name)
            if usage is not None and self._places.take(name):
                for metric, figure in METRICS.items():
                    families[metric].add(getattr(usage, figure), tenant=name)
                throttled.add(usage.throttled_ms / 1000, tenant=name)
            elif usage is not None:
                others.update({metric: getattr(usage, figure) for metric, figure in METRICS.items()})
                others["throttled_ms"] += usage.throttled_ms
            if number % IN_A_TURN == 0:
                yield None
        if others:
            for metric, family in families.items():
                family.add(others[metric], tenant=OTHER)
            throttled.add(others["throttled_ms"] / 1000, tenant=OTHER)
        yield from (family.metric for family in (*families.values(), throttled))
