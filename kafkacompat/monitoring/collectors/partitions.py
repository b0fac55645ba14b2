"""The one pass over all partitions that a scrape makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kafkacompat.monitoring.collectors import IN_A_TURN, Collected

if TYPE_CHECKING:
    from kafkacompat.monitoring.observed import Observed
    from kafkacompat.partitions.partition import Partition


class PartitionCounter(Protocol):
    """A collector of metrics that are computed from partitions."""

    def begin_pass(self) -> None:
        """Begin a pass: nothing is counted yet."""

    def add_partition(self, partition: Partition) -> None:
        """Count a partition."""


class PartitionPass:
    """Shows each partition to all collectors that count them, before these collect their metrics."""

    def __init__(self, observed: Observed, counters: Sequence[PartitionCounter]) -> None:
        self._observed = observed
        self._counters = counters

    def collect(self) -> Collected:
        """Make the pass; there is no metric of its own."""
        for counter in self._counters:
            counter.begin_pass()
        for number, partition in enumerate(list(self._observed.replicas), 1):
            for counter in self._counters:
                counter.add_partition(partition)
            if number % IN_A_TURN == 0:
                yield None
