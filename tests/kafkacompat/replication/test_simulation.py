"""Followers under faults end up equal to their leaders, and never keep a batch that diverges."""

from __future__ import annotations

import pytest

from tests.kafkacompat.replication.cluster import Faults, SimulatedCluster
from tests.kafkacompat.replication.serving import Versions

RUN_S = 8.0


def simulate(seed: int, versions: Versions, faults: Faults, *, truncates_on_fetch: bool, syncs: bool) -> None:
    cluster = SimulatedCluster(seed, versions, faults, truncates_on_fetch=truncates_on_fetch, syncs=syncs)
    cluster.run(RUN_S)
    cluster.stop_faults()
    cluster.settle()
    assert len(cluster.predecessors) > 100
    assert any(epoch > 5 for _, epoch in cluster.leaders.values())


@pytest.mark.parametrize("syncs", [False, True])
@pytest.mark.parametrize("fetch_version", range(12, 18))
def test_any_election_with_truncation_on_fetch(fetch_version: int, syncs: bool) -> None:
    versions = Versions(fetch_version, epochs=4, offsets=8)
    simulate(fetch_version, versions, Faults(elects_any=True), truncates_on_fetch=True, syncs=syncs)


@pytest.mark.parametrize(("fetch_version", "epoch_version"), [(9, 2), (10, 2), (10, 3), (11, 3), (11, 4), (17, 4)])
def test_any_election_with_questions_for_epochs(fetch_version: int, epoch_version: int) -> None:
    versions = Versions(fetch_version, epoch_version, offsets=5)
    simulate(epoch_version, versions, Faults(elects_any=True), truncates_on_fetch=False, syncs=False)


@pytest.mark.parametrize(
    ("fetch_version", "epoch_version", "offsets_version"),
    [(4, 0, 2), (5, 0, 0), (6, 0, 1), (7, 0, 2), (8, 1, 3)],
)
def test_clean_elections_before_leader_epochs_fence(
    fetch_version: int, epoch_version: int, offsets_version: int
) -> None:
    """Before KIP-279 and KIP-320 the protocol cannot tell logs apart after unclean elections."""
    versions = Versions(fetch_version, epoch_version, offsets_version)
    simulate(fetch_version, versions, Faults(elects_any=False), truncates_on_fetch=False, syncs=False)


@pytest.mark.parametrize("seed", range(100, 106))
def test_many_elections_and_losses(seed: int) -> None:
    faults = Faults(elects_any=True, loses_messages=0.2, most_delay_s=0.2)
    simulate(seed, Versions(), faults, truncates_on_fetch=seed % 2 == 0, syncs=seed % 3 == 0)
