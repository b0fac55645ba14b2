"""Who becomes leader, and what the in-sync set is afterwards."""

from __future__ import annotations

import pytest

from kafkacompat.cluster.decisions.elections import (
    elect_for_shutdown,
    elect_offline,
    elect_preferred,
    elect_reassigned,
    raise_leader_epoch,
    remove_in_sync,
)
from kafkacompat.metadata.image import PartitionImage
from tests.kafkacompat.cluster.decisions.clusters import partition, stateless

THREE = (1, 2, 3)


@pytest.mark.parametrize(
    ("online", "unclean", "before", "after"),
    [
        # The first assigned replica that is in sync, not the first of the in-sync set.
        ([2, 3], False, partition(1, THREE, (3, 2, 1)), (2, (3, 2), False)),
        ([3, 2], False, partition(1, THREE, (1, 3)), (3, (3,), False)),
        # Replicas that are not in sync wait, unless an unclean election is allowed.
        ([2, 3], False, partition(1, THREE, (1,)), None),
        ([2, 3], True, partition(1, THREE, (1,)), (2, (2,), True)),
        ([3], True, partition(1, THREE, (1, 3)), (3, (3,), False)),
        ([], True, partition(1, THREE, (1,)), None),
        # A partition that recovers still does under its next leader.
        ([2], False, partition(1, THREE, (1, 2), recovering=True), (2, (2,), True)),
        # The first leader of all: every replica that is online is in sync.
        ([2, 3], False, stateless(THREE), (2, (2, 3), False)),
        ([], True, stateless(THREE), None),
    ],
)
def test_offline_elections(
    online: list[int], unclean: bool, before: PartitionImage, after: tuple[int, tuple[int, ...], bool] | None
) -> None:
    elected = elect_offline(before, online, unclean=unclean)
    if after is None:
        assert elected is None
    else:
        assert elected is not None
        assert (elected.leader, elected.in_sync_replicas, elected.is_recovering) == after
        assert elected.leader_epoch == before.leader_epoch + 1
        assert elected.partition_epoch == before.partition_epoch + 1
        assert elected.replicas == before.replicas


def test_before_3_2_an_unclean_election_does_not_mark_the_partition() -> None:
    elected = elect_offline(partition(1, (1, 2), (1,)), [2], unclean=True, recovery_supported=False)
    assert elected == partition(2, (1, 2), (2,))._replace(leader_epoch=6, partition_epoch=8)


@pytest.mark.parametrize(
    ("online", "isr", "leader"),
    [([1, 4, 5], (1, 4, 5), 4), ([1, 5], (1, 4, 5), 5), ([1, 4, 5], (1, 5), 5), ([1, 4], (1, 5), None)],
)
def test_a_reassignment_elects_a_replica_of_its_target(
    online: list[int], isr: tuple[int, ...], leader: int | None
) -> None:
    before = partition(1, (4, 5, 1), isr, adding=(4, 5), removing=(1,))
    elected = elect_reassigned(before, online)
    assert (elected and elected.leader) == leader
    assert elected is None or elected.in_sync_replicas == isr


@pytest.mark.parametrize(
    ("online", "isr", "leader"), [([1, 2], (2, 1), 1), ([2], (1, 2), None), ([1, 2], (2, 3), None)]
)
def test_only_the_first_replica_is_preferred(online: list[int], isr: tuple[int, ...], leader: int | None) -> None:
    elected = elect_preferred(partition(2, THREE, isr), online)
    assert (elected and (elected.leader, elected.in_sync_replicas)) == (leader and (leader, isr))


@pytest.mark.parametrize(
    ("isr", "shutting_down", "after"),
    [
        (THREE, {1}, (2, (2, 3))),
        (THREE, {1, 2}, (3, (3,))),
        ((1,), {1}, None),
        ((1, 2), {1, 2}, None),
    ],
)
def test_a_shutdown_moves_leadership_to_a_broker_that_stays(
    isr: tuple[int, ...], shutting_down: set[int], after: tuple[int, tuple[int, ...]] | None
) -> None:
    elected = elect_for_shutdown(partition(1, THREE, isr), THREE, shutting_down)
    assert (elected and (elected.leader, elected.in_sync_replicas)) == after


@pytest.mark.parametrize(
    ("isr", "leaving", "after"),
    [
        (THREE, {2}, (1, (1, 3))),
        (THREE, {1}, (-1, (2, 3))),
        ((1,), {1}, (-1, (1,))),
        ((1, 2), {1, 2}, (-1, (1, 2))),
    ],
)
def test_the_last_members_stay_in_sync(
    isr: tuple[int, ...], leaving: set[int], after: tuple[int, tuple[int, ...]]
) -> None:
    left = remove_in_sync(partition(1, THREE, isr), leaving)
    assert (left.leader, left.in_sync_replicas) == after
    assert (left.leader_epoch, left.partition_epoch) == (6, 8)


@pytest.mark.parametrize("before", [partition(1, THREE, (1, 2)), partition(-1, (1, 3), (3,))])
def test_nothing_changes_when_a_broker_leaves_that_is_not_in_sync(before: PartitionImage) -> None:
    assert remove_in_sync(before, {3}) is before


def test_a_new_epoch_keeps_leader_and_in_sync_set() -> None:
    raised = raise_leader_epoch(partition(1, THREE, (1, 2)))
    assert raised == partition(1, THREE, (1, 2))._replace(leader_epoch=6, partition_epoch=8)
