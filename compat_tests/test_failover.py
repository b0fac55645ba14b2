"""The demo of a cluster with a smaller load: a leader is killed, and every acknowledged record is read back in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.failover import Acknowledged, DemoCluster, Outcome, describe_outcome, judge_records, kill_leader
from compat_tests.waiting import until

SECONDS = 6
RATE = 1000


@pytest.fixture
def _only_ours(broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("this is our command line")


@pytest.mark.tools
@pytest.mark.usefixtures("_only_ours")
def test_a_killed_leader_loses_nothing_and_comes_back_into_the_in_sync_set(tmp_path: Path) -> None:
    cluster = DemoCluster(tmp_path / "cluster")
    cluster.start()
    try:
        # Returns only after every replica is in sync, that of the killed broker too.
        outcome = kill_leader(cluster, SECONDS, RATE)
        node = int(outcome.killed.removeprefix("broker-"))
        until(lambda: cluster.process(node).stage == "ready")
        assert cluster.process(node).restarts == 1
    finally:
        cluster.stop()
    assert (outcome.lost, outcome.duplicates, outcome.out_of_order, outcome.errors) == (0, 0, 0, {})
    assert outcome.acknowledged > SECONDS * RATE / 2
    assert 0 < outcome.gap_seconds < SECONDS


def test_lost_doubled_and_disordered_records_are_counted() -> None:
    known = Acknowledged()
    known.numbers[0] = [0, 1, 2, 3]
    known.times[0] = [1.0, 1.5, 4.0, 4.1]
    read: dict[int, list[int]] = {number: [] for number in known.numbers} | {0: [0, 2, 1, 2]}
    outcome = judge_records(known, read, "broker-1", [0])
    assert outcome == Outcome(
        acknowledged=4,
        errors={},
        lost=1,
        duplicates=1,
        out_of_order=1,
        gap_seconds=2.5,
        killed="broker-1",
        partitions=[0],
    )
    assert "records lost            1" in list(describe_outcome(outcome))
