"""What the monitor expects after a power failure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkacompat.metadata.znodes.topics import LeaderIsrAndControllerEpoch
from tests.simulation.cluster_state import ReplicaKey, StoredPartition
from tests.simulation.committed import CommittedLog
from tests.simulation.machines import State
from tests.simulation.monitor import Monitor
from tests.simulation.settings import FSYNC, KAFKA

KEY = ReplicaKey(b"topic of 16 byte", 0)
FAILED, LEADER = 2, 3
COMMITTED_END = 5


def make_stored(*in_sync: int) -> StoredPartition:
    state = LeaderIsrAndControllerEpoch(
        leader=in_sync[0], leader_epoch=0, in_sync_replicas=in_sync, is_recovering=False, controller_epoch=1
    )
    return StoredPartition("t", KEY, (LEADER, FAILED), False, state)


def lose_power_and_hand_over(acks_after: str, synced_end: int, end: int) -> Monitor:
    """Let a follower lose its power, and its leader hand the partition to it before anyone notices; return the monitor."""
    before, after = make_stored(LEADER, FAILED), make_stored(FAILED)
    stored: Any = SimpleNamespace(partitions={("t", 0): before}, unclean_topics=set())
    machines: Any = {LEADER: SimpleNamespace(state=State.STOPPING)}
    monitor = Monitor(machines, stored, acks_after, pytest.fail)
    replica: Any = SimpleNamespace(log=SimpleNamespace(recovery_point=synced_end, log_end_offset=end))
    monitor._replicas[FAILED, KEY] = replica
    monitor._committed[KEY] = committed = CommittedLog()
    committed.end = COMMITTED_END
    monitor.note_power_failure(FAILED)
    stored.on_partition(before, after)
    return monitor


def test_the_end_that_a_follower_had_not_synced_may_be_lost_although_it_is_committed_later() -> None:
    """Its last fetch may be under way when the power fails; the leader then counts the whole log."""
    assert lose_power_and_hand_over(KAFKA, synced_end=8, end=10).lossy == {KEY: "t-0"}


def test_a_follower_that_has_synced_its_log_loses_nothing() -> None:
    assert not lose_power_and_hand_over(KAFKA, synced_end=10, end=10).lossy


def test_nothing_that_counts_is_lost_if_only_synced_records_count() -> None:
    assert not lose_power_and_hand_over(FSYNC, synced_end=8, end=10).lossy


def test_a_log_that_a_stopping_broker_has_closed_is_not_read() -> None:
    stored: Any = SimpleNamespace(partitions={}, find=lambda key: None)
    machines: Any = {LEADER: SimpleNamespace(state=State.STOPPING)}
    monitor = Monitor(machines, stored, KAFKA, pytest.fail)
    # It has no reader: comparing it would raise AttributeError.
    closed: Any = SimpleNamespace(offline=True, config=SimpleNamespace(cleanup_policy="delete"))
    state: Any = SimpleNamespace(name="t-0", log=closed, leading=None)
    life: Any = SimpleNamespace(node=LEADER)
    monitor._check_high_watermark(state, life, KEY, 0, COMMITTED_END)
    assert not monitor._committed
