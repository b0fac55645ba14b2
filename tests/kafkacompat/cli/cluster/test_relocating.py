"""Plans that take partitions to other brokers."""

from __future__ import annotations

from collections import Counter

import pytest

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.cluster.relocating import plan_relocation

OLD = (1, 2, 3)


def assign(topics: int, partitions: int) -> dict[PartitionName, tuple[int, ...]]:
    return {
        PartitionName(f"t{topic}", index): OLD[(topic + index) % 3 :] + OLD[: (topic + index) % 3]
        for topic in range(topics)
        for index in range(partitions)
    }


def test_partitions_spread_over_the_targets() -> None:
    assignments = assign(4, 12)
    moves = plan_relocation(assignments, dict.fromkeys(range(4, 9)))
    assert [move.name for move in moves] == sorted(assignments)
    for chosen in (moves, [move for move in moves if move.name.topic == "t1"]):
        replicas = Counter(node_id for move in chosen for node_id in move.after)
        leaders = Counter(move.after[0] for move in chosen)
        assert set(replicas) == set(leaders) == set(range(4, 9))
        assert max(replicas.values()) - min(replicas.values()) <= 1
        assert max(leaders.values()) - min(leaders.values()) <= 2
    assert all(len(set(move.after)) == 3 for move in moves)


def test_replicas_spread_over_racks() -> None:
    racks = {4: "x", 5: "x", 6: "x", 7: "y", 8: "z"}
    moves = plan_relocation(assign(2, 6), racks)
    assert all({racks[node_id] for node_id in move.after} == {"x", "y", "z"} for move in moves)


def test_replicas_on_the_targets_stay() -> None:
    assignments = {PartitionName("t", 0): (1, 4), PartitionName("t", 1): (5, 4), PartitionName("t", 2): (4, 6)}
    (move,) = plan_relocation(assignments, {4: None, 5: None, 6: None})
    assert (move.name.partition, move.before, set(move.added)) == (0, (1, 4), {6} if 6 in move.after else {5})
    assert 4 in move.after


def test_a_group_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="t0-0 has 3 replicas, and only 2 brokers can have them"):
        plan_relocation(assign(1, 1), {4: None, 5: None})


def test_nothing_moves_where_everything_is_in_its_place() -> None:
    assert plan_relocation(assign(3, 3), dict.fromkeys(OLD)) == []
