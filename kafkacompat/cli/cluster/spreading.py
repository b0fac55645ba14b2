"""Which replicas move so that all brokers have equally many, with the least movement: values only, no requests.

A replica leaves a broker that has more than its share for one that has less. No plan with fewer moves reaches the same shares.
The partitions of each topic spread as well, and no partition occupies fewer racks than before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kafkacompat.cli.cluster.reading import PartitionName

EVEN_OUT, KEEP_EVEN, ANYHOW = 2, 1, -(1 << 31)
"""Least difference between the replicas of a topic at the source and at the target. From 2 on, a move evens out the topic."""


class ReplicaMove(NamedTuple):
    """The replicas of a partition before and after; the first one is the preferred leader."""

    name: PartitionName
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def added(self) -> list[int]:
        """The brokers that copy the partition."""
        return [node_id for node_id in self.after if node_id not in self.before]


def plan_spread(
    assignments: Mapping[PartitionName, Sequence[int]], racks: Mapping[int, str | None]
) -> list[ReplicaMove]:
    """Return the moves that give each broker of *racks* its share of the replicas, in the order of the partitions."""
    spread = _Spread(assignments, racks)
    for node_ids in _list_groups(racks):
        spread.even_out(node_ids)
    moved = [name for name in sorted(assignments) if spread.replicas[name] != list(assignments[name])]
    spread.even_out_leaders(moved)
    return [ReplicaMove(name, tuple(assignments[name]), tuple(spread.replicas[name])) for name in moved]


class _Spread:
    """An assignment while it is changed; ``surplus`` is how many replicas each broker has above its share."""

    def __init__(self, assignments: Mapping[PartitionName, Sequence[int]], racks: Mapping[int, str | None]) -> None:
        self.replicas = {name: list(assignments[name]) for name in sorted(assignments)}
        self.names_by_topic: dict[str, list[PartitionName]] = defaultdict(list)
        for name in self.replicas:
            self.names_by_topic[name.topic].append(name)
        self._racks = racks if all(racks.values()) else dict.fromkeys(racks)
        self._times_moved: Counter[PartitionName] = Counter()
        self._surplus: Counter[int] = Counter()

    def even_out(self, node_ids: Iterable[int]) -> None:
        """Move replicas from broker to broker of *node_ids*, until each has its share of those that they have together."""
        self._surplus = _count_surplus(self.replicas.values(), node_ids)
        for least_gap in (EVEN_OUT, KEEP_EVEN, ANYHOW):
            for names in self.names_by_topic.values():
                self._even_out_topic(names, least_gap)

    def _even_out_topic(self, names: Sequence[PartitionName], least_gap: int) -> None:
        """Move replicas of one topic while brokers have a surplus, others lack replicas, and the topic allows it."""
        counts = Counter(node_id for name in names for node_id in self.replicas[name])
        while self._move_one(names, counts, least_gap):
            pass

    def _move_one(self, names: Sequence[PartitionName], counts: Counter[int], least_gap: int) -> bool:
        sources = [node_id for node_id, surplus in self._surplus.items() if surplus > 0 and counts[node_id]]
        targets = [node_id for node_id, surplus in self._surplus.items() if surplus < 0]
        pairs = [(source, target) for source in sources for target in targets]
        pairs.sort(
            key=lambda pair: (counts[pair[1]] - counts[pair[0]], self._surplus[pair[1]] - self._surplus[pair[0]])
        )
        for source, target in pairs:
            if counts[source] - counts[target] < least_gap:
                return False
            candidates = [name for name in names if self._can_move(name, source, target)]
            if candidates:
                # A partition whose other replicas stay keeps more brokers in sync meanwhile.
                name = min(candidates, key=lambda name: self._times_moved[name])
                self._times_moved[name] += 1
                self.replicas[name][self.replicas[name].index(source)] = target
                for changed in (counts, self._surplus):
                    changed[source] -= 1
                    changed[target] += 1
                return True
        return False

    def _can_move(self, name: PartitionName, source: int, target: int) -> bool:
        replicas = self.replicas[name]
        if source not in replicas or target in replicas:
            return False
        after = [target if node_id == source else node_id for node_id in replicas]
        return self._count_racks(after) >= self._count_racks(replicas)

    def _count_racks(self, replicas: Iterable[int]) -> int:
        return len({self._racks.get(node_id) for node_id in replicas})

    def even_out_leaders(self, names: Sequence[PartitionName]) -> None:
        """Let the preferred leader of a partition that moves be the replica that leads least, which copies nothing more."""
        leaders = Counter(replicas[0] for replicas in self.replicas.values())
        is_changed = True
        while is_changed:
            is_changed = False
            for name in names:
                replicas = self.replicas[name]
                least = min(range(len(replicas)), key=lambda place: leaders[replicas[place]])
                if leaders[replicas[0]] - leaders[replicas[least]] >= 2:
                    leaders[replicas[0]] -= 1
                    leaders[replicas[least]] += 1
                    replicas[0], replicas[least] = replicas[least], replicas[0]
                    is_changed = True


def _list_groups(racks: Mapping[int, str | None]) -> Iterator[Iterable[int]]:
    """Yield all brokers, and then those of each rack: where each partition has to keep its racks, shares differ by rack."""
    yield racks
    for rack in sorted({rack for rack in racks.values() if rack}):
        yield [node_id for node_id in racks if racks[node_id] == rack]


def _count_surplus(assignments: Iterable[Sequence[int]], node_ids: Iterable[int]) -> Counter[int]:
    """Count the replicas of each broker above its share; those that have the most keep the remainder of the division."""
    counts = Counter(dict.fromkeys(sorted(node_ids), 0))
    counts.update(node_id for replicas in assignments for node_id in replicas if node_id in counts)
    share, remainder = divmod(counts.total(), len(counts))
    return Counter(
        {node_id: count - share - (place < remainder) for place, (node_id, count) in enumerate(counts.most_common())}
    )
