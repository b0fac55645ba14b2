"""Groups that this broker coordinates: states, members, committed offsets and lag."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafkacompat.metrics.places import OTHER, SeriesPlaces
from kafkacompat.monitoring.collectors import IN_A_TURN, Collected
from kafkacompat.monitoring.table import Family, make_metric
from kafkacompat.wire.errors import KafkaError

if TYPE_CHECKING:
    from kafkacompat.groups.any_group import AnyGroup
    from kafkacompat.monitoring.observed import Observed

MANAGER = "kafka_coordinator_group_groupmetadatamanager_"
GROUP = "kafka_consumergroup_"
STATES = {
    "PreparingRebalance": "numgroupspreparingrebalance",
    "CompletingRebalance": "numgroupscompletingrebalance",
    "Stable": "numgroupsstable",
    "Empty": "numgroupsempty",
    "Dead": "numgroupsdead",
}
"""The states that Kafka counts, by name."""


class GroupCollector:
    """Collects the groups; the places are for groups, and for partitions with an offset of a group."""

    def __init__(self, observed: Observed, limit: int) -> None:
        self._observed = observed
        self._groups: SeriesPlaces[str] = SeriesPlaces(limit)
        self._offsets: SeriesPlaces[tuple[str, str, int]] = SeriesPlaces(limit)

    def collect(self) -> Collected:
        """Yield the metrics."""
        coordinator = self._observed.coordinators.used_groups
        groups = {} if coordinator is None else dict(coordinator.groups)
        names = ("members", "current_offset", "current_offset_sum", "lag", "lag_sum")
        families = {name: Family(GROUP + name) for name in names}
        states: Counter[tuple[str, str]] = Counter()
        offsets, others = 0, 0
        existing: set[tuple[str, str, int]] = set()
        for number, (name, group) in enumerate(groups.items(), 1):
            states[group.TYPE, group.state_name] += 1
            if self._groups.take(name):
                families["members"].add(group.member_count, consumergroup=name)
                yield from self._collect_offsets(group, families, existing)
            else:
                others += group.member_count
            offsets += len(group.offsets)
            if number % IN_A_TURN == 0:
                yield None
        if others:
            families["members"].add(others, consumergroup=OTHER)
        self._groups.keep(groups)
        self._offsets.keep(existing)
        yield from (family.metric for family in families.values())
        yield make_metric(f"{MANAGER}numgroups", len(groups))
        yield make_metric(f"{MANAGER}numoffsets", offsets)
        for state, metric in STATES.items():
            yield make_metric(MANAGER + metric, sum(count for (_, name), count in states.items() if name == state))
        by_state = Family("kafkacompat_groups")
        for (kind, state), count in sorted(states.items()):
            by_state.add(count, type=kind, state=state)
        yield by_state.metric

    def _collect_offsets(
        self, group: AnyGroup, families: dict[str, Family], existing: set[tuple[str, str, int]]
    ) -> Collected:
        """Add the offsets of one group; *existing* collects the keys of all offsets."""
        name = group.group_id
        for topic, partitions in list(group.offsets.by_topic.items()):
            sums, lags, has_lag, has_place = 0, 0, False, False
            for number, (index, committed) in enumerate(list(partitions.items()), 1):
                lag = self._find_lag(topic, index, committed.offset)
                has_lag = has_lag or lag is not None
                sums, lags = sums + committed.offset, lags + (lag or 0)
                existing.add((name, topic, index))
                if self._offsets.take((name, topic, index)):
                    has_place = True
                    families["current_offset"].add(committed.offset, consumergroup=name, topic=topic, partition=index)
                    if lag is not None:
                        families["lag"].add(lag, consumergroup=name, topic=topic, partition=index)
                if number % IN_A_TURN == 0:
                    yield None
            if has_place:
                families["current_offset_sum"].add(sums, consumergroup=name, topic=topic)
            if has_place and has_lag:
                families["lag_sum"].add(lags, consumergroup=name, topic=topic)

    def _find_lag(self, topic: str, index: int, offset: int) -> int | None:
        """Return how far an offset is before the high watermark; None if this broker has no replica."""
        try:
            partition = self._observed.replicas.find(topic, index)
        except KafkaError:
            return None
        return max(0, partition.high_watermark.offset - offset)
