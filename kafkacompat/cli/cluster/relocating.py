"""Which replicas move so that partitions leave all brokers but the given ones: values only, no requests.

A replica that is on such a broker already stays. The others spread over racks first, then the partitions of each topic, then all
replicas; so do the preferred leaders.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.cluster.spreading import ReplicaMove


def plan_relocation(
    assignments: Mapping[PartitionName, Sequence[int]], targets: Mapping[int, str | None]
) -> list[ReplicaMove]:
    """Return the moves that take partitions to the brokers of *targets*, which have these racks.

    Raises ValueError if a partition has more replicas than there are targets.
    """
    relocation = _Relocation(targets)
    moves = []
    for name in sorted(assignments):
        before = tuple(assignments[name])
        if len(before) > len(targets):
            raise ValueError(
                f"{name.topic}-{name.partition} has {len(before)} replicas, and only {len(targets)} brokers can have them"
            )
        if targets.keys() >= set(before):
            relocation.note(name, before)
        else:
            moves.append((name, before))
    return [ReplicaMove(name, before, relocation.choose(name, before)) for name, before in moves]


class _Relocation:
    """The replicas on the targets while they are chosen."""

    def __init__(self, targets: Mapping[int, str | None]) -> None:
        self._racks = targets if all(targets.values()) else dict.fromkeys(targets)
        self._replicas: Counter[int] = Counter()
        self._replicas_of_topic: dict[str, Counter[int]] = defaultdict(Counter)
        self._leaders: Counter[int] = Counter()
        self._leaders_of_topic: dict[str, Counter[int]] = defaultdict(Counter)

    def note(self, name: PartitionName, replicas: Sequence[int]) -> None:
        """Count the replicas of a partition; the first one is the preferred leader."""
        self._replicas.update(replicas)
        self._replicas_of_topic[name.topic].update(replicas)
        self._leaders[replicas[0]] += 1
        self._leaders_of_topic[name.topic][replicas[0]] += 1

    def choose(self, name: PartitionName, before: Sequence[int]) -> tuple[int, ...]:
        """Choose the replicas of a partition, and count them."""
        chosen = [node_id for node_id in before if node_id in self._racks]
        while len(chosen) < len(before):
            chosen.append(self._find_next(name.topic, chosen))
        leaders = self._leaders_of_topic[name.topic]
        first = min(chosen, key=lambda node_id: (leaders[node_id], self._leaders[node_id]))
        replicas = (first, *(node_id for node_id in chosen if node_id != first))
        self.note(name, replicas)
        return replicas

    def _find_next(self, topic: str, chosen: Sequence[int]) -> int:
        used_racks = {self._racks[node_id] for node_id in chosen}
        counts = self._replicas_of_topic[topic]
        candidates = [node_id for node_id in sorted(self._racks) if node_id not in chosen]
        return min(
            candidates,
            key=lambda node_id: (self._racks[node_id] in used_racks, counts[node_id], self._replicas[node_id]),
        )
