"""The limit of what an instance stores, and the plan that evens out disks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkacompat.config.instances import Instance
from kafkacompat.tenancy.capacity import (
    BrokerDisk,
    HeldBackError,
    StorageAccount,
    StoredReplica,
    plan_capacity_moves,
)
from kafkacompat.wire.errors import ErrorCode


def account(**given: str) -> StorageAccount:
    return StorageAccount(Instance("shop", {name.replace("_", "."): value for name, value in given.items()}))


def test_an_instance_without_a_limit_is_never_full() -> None:
    unlimited = account()
    unlimited.stored_bytes = 1 << 60
    unlimited.check_room()


@pytest.mark.parametrize(("limit", "stored", "is_full"), [("0", 0, True), ("10", 9, False), ("10", 10, True)])
def test_producing_is_held_back_at_the_limit(limit: str, stored: int, is_full: bool) -> None:
    limited = account(limit_storage_bytes=limit)
    limited.stored_bytes = stored
    assert limited.is_full is is_full


@pytest.mark.parametrize(
    ("error", "code", "is_retriable"),
    [("retriable", ErrorCode.NOT_ENOUGH_REPLICAS, True), ("final", ErrorCode.POLICY_VIOLATION, False)],
)
def test_the_property_chooses_the_error(error: str, code: ErrorCode, is_retriable: bool) -> None:
    limited = account(limit_storage_bytes="5", limit_storage_error=error)
    limited.stored_bytes = 7
    with pytest.raises(HeldBackError) as caught:
        limited.check_room()
    assert (caught.value.code, caught.value.is_retriable) == (code, is_retriable)
    assert caught.value.detail.startswith("7 bytes are stored and limit.storage.bytes is 5")


def test_the_bytes_of_other_brokers_count() -> None:
    limited = account(limit_storage_bytes="100")
    limited.stored_bytes = 40
    limited.note_total(90, 30)
    assert (limited.total_bytes, limited.is_full) == (100, True)
    # The others have deleted records, and this broker has appended since its report.
    limited.note_total(50, 40)
    assert (limited.total_bytes, limited.is_full) == (50, False)


def test_a_raised_limit_counts_at_once() -> None:
    limited = account(limit_storage_bytes="5")
    limited.stored_bytes = 5
    limited.configure(Instance("shop", {"limit.storage.bytes": "6"}))
    assert not limited.is_full


# The plan


def test_the_fullest_broker_gives_to_the_emptiest() -> None:
    disks = {1: BrokerDisk(90, 100), 2: BrokerDisk(10, 100), 3: BrokerDisk(50, 100)}
    moves = plan_capacity_moves(disks, [StoredReplica("t", 0, (1, 3), 40)], (1, 2, 3))
    assert [(move.source, move.target, move.replicas) for move in moves] == [(1, 2, (2, 3))]


def test_nothing_moves_within_the_tolerance_or_out_of_the_group() -> None:
    disks = {1: BrokerDisk(53, 100), 2: BrokerDisk(50, 100), 3: BrokerDisk(0, 100)}
    assert plan_capacity_moves(disks, [StoredReplica("t", 0, (1,), 1)], (1, 2)) == []


def test_larger_disks_take_more() -> None:
    disks = {1: BrokerDisk(800, 1000), 2: BrokerDisk(0, 4000)}
    replicas = [StoredReplica("t", index, (1,), 100) for index in range(8)]
    moved = sum(move.size_bytes for move in plan_capacity_moves(disks, replicas, (1, 2)))
    assert moved in (600, 700)


def test_no_rack_gets_a_second_replica() -> None:
    disks = {1: BrokerDisk(90, 100), 2: BrokerDisk(5, 100), 3: BrokerDisk(5, 100)}
    racks = {1: "a", 2: "b", 3: "b"}
    assert plan_capacity_moves(disks, [StoredReplica("t", 0, (1, 2), 30)], (1, 2, 3), racks=racks) == []
    # In the rack of the broker that it leaves there is a place.
    racks[3] = "a"
    assert len(plan_capacity_moves(disks, [StoredReplica("t", 0, (1, 2), 30)], (1, 2, 3), racks=racks)) == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 50)), max_size=12),
    st.lists(st.integers(100, 1000), min_size=4, max_size=4),
)
def test_moves_never_widen_the_gap_nor_double_a_replica(
    given_replicas: list[tuple[int, int, int]], sizes: list[int]
) -> None:
    replicas = [
        StoredReplica("t", index, tuple(dict.fromkeys((first, second))), size)
        for index, (first, second, size) in enumerate(given_replicas)
    ]
    used = {node: sum(replica.size_bytes for replica in replicas if node in replica.replicas) for node in range(4)}
    disks = {node: BrokerDisk(used[node], sizes[node]) for node in range(4)}
    before = max(used[node] / sizes[node] for node in range(4))
    moves = plan_capacity_moves(disks, replicas, range(4))
    placed = {replica.partition: replica.replicas for replica in replicas}
    for move in moves:
        assert move.source in placed[move.partition] and move.target not in placed[move.partition]
        placed[move.partition] = move.replicas
        used[move.source] -= move.size_bytes
        used[move.target] += move.size_bytes
    assert all(len(set(nodes)) == len(nodes) for nodes in placed.values())
    assert max(used[node] / sizes[node] for node in range(4)) <= before
    assert len(moves) < 100
