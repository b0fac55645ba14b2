"""Transactions: those that this broker coordinates, and those that are open in the partitions that it leads."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafkacompat.monitoring.collectors import IN_A_TURN, Collected
from kafkacompat.monitoring.table import Family, make_metric

if TYPE_CHECKING:
    from kafkacompat.monitoring.observed import Observed
    from kafkacompat.partitions.partition import Partition


class TransactionCollector:
    """Collects the states of transactional ids, and counts open transactions."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._open = 0

    def begin_pass(self) -> None:
        """See PartitionCounter."""
        self._open = 0

    def add_partition(self, partition: Partition) -> None:
        """See PartitionCounter."""
        if partition.is_leader:
            self._open += len(partition.log.producer_state.open)

    def collect(self) -> Collected:
        """Yield the metrics."""
        from kafkacompat.transactions.state import NAMES

        coordinator = self._observed.coordinators.used_transactions
        states: Counter[str] = Counter()
        for number, item in enumerate([] if coordinator is None else list(coordinator.ids.values()), 1):
            states[NAMES[item.current.state]] += 1
            if number % IN_A_TURN == 0:
                yield None
        ids = Family("kafkacompat_transactional_ids")
        for state, count in sorted(states.items()):
            ids.add(count, state=state)
        yield ids.metric
        yield make_metric("kafkacompat_open_transactions", self._open)
