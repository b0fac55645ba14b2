"""Plans that spread partitions over brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.cluster.spreading import ReplicaMove, plan_spread

Assignments = dict[PartitionName, tuple[int, ...]]


def assign(topics: int, partitions: int, replicas: int, brokers: int) -> Assignments:
    """Assign partitions one broker after the other, from broker 1."""
    return {
        PartitionName(f"t{topic}", index): tuple((topic + index + place) % brokers + 1 for place in range(replicas))
        for topic in range(topics)
        for index in range(partitions)
    }


def without_racks(brokers: int) -> dict[int, str | None]:
    return dict.fromkeys(range(1, brokers + 1))


def carry_out(assignments: Assignments, moves: Sequence[ReplicaMove]) -> Assignments:
    return {**assignments, **{move.name: move.after for move in moves}}


def count_replicas(assignments: Mapping[PartitionName, Sequence[int]], brokers: int) -> list[int]:
    counts = Counter(node_id for replicas in assignments.values() for node_id in replicas)
    return [counts[node_id] for node_id in range(1, brokers + 1)]


def count_leaders(assignments: Mapping[PartitionName, Sequence[int]], brokers: int) -> list[int]:
    counts = Counter(replicas[0] for replicas in assignments.values())
    return [counts[node_id] for node_id in range(1, brokers + 1)]


@pytest.mark.parametrize(("replicas", "before", "after"), [(1, 1, 3), (2, 3, 4), (3, 3, 5), (3, 4, 7)])
def test_each_broker_gets_its_share_by_the_fewest_moves(replicas: int, before: int, after: int) -> None:
    assignments = assign(4, 30, replicas, before)
    moves = plan_spread(assignments, without_racks(after))
    spread = carry_out(assignments, moves)
    counts = count_replicas(spread, after)
    assert max(counts) - min(counts) <= 1
    assert sum(len(move.added) for move in moves) == sum(counts[before:])
    assert all(len(set(spread[name])) == replicas for name in spread)
    leaders = count_leaders(spread, after)
    assert max(leaders) - min(leaders) <= 2


def test_each_topic_spreads() -> None:
    spread = carry_out(assignments := assign(5, 20, 3, 3), plan_spread(assignments, without_racks(5)))
    for topic in range(5):
        counts = count_replicas({name: spread[name] for name in spread if name.topic == f"t{topic}"}, 5)
        assert max(counts) - min(counts) <= 2


def test_a_second_plan_finds_nothing() -> None:
    spread = carry_out(assignments := assign(3, 17, 2, 3), plan_spread(assignments, without_racks(5)))
    assert plan_spread(spread, without_racks(5)) == []


def test_partitions_that_do_not_move_keep_their_order() -> None:
    assignments = {PartitionName("t", index): (1, 2, 3) for index in range(9)}
    assert plan_spread(assignments, without_racks(3)) == []
    moves = plan_spread(assignments, without_racks(4))
    assert all(4 in move.after for move in moves)


def test_no_partition_gets_fewer_racks() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "b", 3: "c", 4: "c", 5: "c"}
    assignments = assign(1, 30, 3, 3)
    spread = carry_out(assignments, plan_spread(assignments, racks))
    assert all(len({racks[node_id] for node_id in replicas}) == 3 for replicas in spread.values())
    assert count_replicas(spread, 5)[2:] == [10, 10, 10]


def test_racks_do_not_count_where_a_broker_has_none() -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: None}
    assignments = assign(1, 12, 3, 3)
    assert count_replicas(carry_out(assignments, plan_spread(assignments, racks)), 4) == [9, 9, 9, 9]


def test_a_cluster_without_partitions_needs_no_move() -> None:
    assert plan_spread({}, without_racks(3)) == []


def test_thousands_of_partitions_are_planned() -> None:
    assignments = assign(500, 20, 3, 3)
    moves = plan_spread(assignments, without_racks(5))
    assert count_replicas(carry_out(assignments, moves), 5) == [6000] * 5
