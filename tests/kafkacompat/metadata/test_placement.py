"""Where new replicas go: the examples of Kafka's documentation, and what holds for all clusters."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacompat.metadata.image import PartitionImage
from kafkacompat.metadata.placement import new_partition, place_added_replicas, place_replicas
from kafkacompat.wire.errors import ErrorCode, KafkaError

FIVE: dict[int, str | None] = dict.fromkeys(range(5))
RACKS: dict[int, str | None] = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_followers_shift_with_each_round() -> None:
    assert place_added_replicas(FIVE, [(0, 1, 2)], 9) == [
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_racks_alternate() -> None:
    assert place_added_replicas(RACKS, [(0, 3, 1)], 6) == [
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


@pytest.mark.parametrize(
    ("existing", "placed"),
    [
        ([(3, 4)], [(4, 3), (0, 4)]),
        # Broker 7 has gone: the next one takes its place, or else the first.
        ([(7, 4)], [(1, 2), (2, 3)]),
        ([(2, 0), (4, 4)], [(4, 2), (0, 3)]),
    ],
)
def test_added_partitions_continue(existing: list[tuple[int, ...]], placed: list[tuple[int, ...]]) -> None:
    assert place_added_replicas(FIVE, existing, 2) == placed


def test_one_broker_has_everything() -> None:
    assert place_replicas({7: None}, 3, 1, Random(1)) == [(7,)] * 3
    assert place_added_replicas({7: "rack"}, [(7,)], 2) == [(7,)] * 2


@pytest.mark.parametrize("factor", [1, 3, 5])
def test_the_start_and_the_shift_are_random(factor: int) -> None:
    placements = {place_replicas(FIVE, 1, factor, Random(seed))[0] for seed in range(300)}
    # The shift of four follower positions decides nothing for a single replica.
    assert len(placements) == (5 if factor == 1 else 20)


@given(
    st.dictionaries(st.integers(0, 30), st.sampled_from("abc"), min_size=1, max_size=9),
    st.integers(1, 40),
    st.data(),
    st.booleans(),
)
def test_placements_are_even_and_use_all_racks(
    racks: dict[int, str], count: int, data: st.DataObject, aware: bool
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    known: dict[int, str | None] = {node: rack if aware else None for node, rack in racks.items()}
    placed = place_replicas(known, count, factor, Random(data.draw(st.integers(0, 99))))
    assert len(placed) == count
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert set(replicas) <= racks.keys()
        if aware:
            used = {racks[node] for node in replicas}
            assert len(used) == min(factor, len(set(racks.values())))
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.get(node, 0) for node in racks) <= 1


def test_too_few_brokers() -> None:
    for racks, factor in ((FIVE, 6), ({1: "a"}, 2), ({}, 1)):
        with pytest.raises(KafkaError) as problem:
            place_replicas(racks, 1, factor, Random(1))
        assert problem.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(KafkaError) as problem:
        place_added_replicas({1: None}, [(1, 2)], 1)
    assert problem.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_racks_on_some_brokers_only() -> None:
    with pytest.raises(KafkaError) as problem:
        place_replicas({1: "a", 2: None, 3: None}, 1, 1, Random(1))
    assert problem.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert problem.value.detail == "set broker.rack on every broker or on none: broker(s) 2, 3 have no rack"


@pytest.mark.parametrize(
    ("online", "partition"),
    [
        ({1, 2, 3}, PartitionImage(4, 2, 0, (2, 3), (2, 3), 0)),
        ({1, 3}, PartitionImage(4, 3, 0, (2, 3), (3,), 0)),
        ({1}, PartitionImage(4, -1, -1, (2, 3), (), -1)),
    ],
)
def test_the_first_leader_is_the_first_replica_that_is_online(online: set[int], partition: PartitionImage) -> None:
    assert new_partition(4, [2, 3], online) == partition
