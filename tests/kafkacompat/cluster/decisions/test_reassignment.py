"""Reassignments: how they start, are replaced and cancelled, and when they end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkacompat.cluster.decisions.reassignment import (
    complete_reassignments,
    keep_unfinished,
    list_reassignments,
    reassign_partitions,
    reassign_stored,
)
from kafkacompat.cluster.decisions.situation import DeletionProgress, Situation, TopicPartition
from kafkacompat.metadata.image import PartitionImage
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.cluster.decisions.clusters import NOBODY, T0, T1, U0, build_draft, partition, stateless

ALL = (1, 2, 3, 4, 5, 6)
THREE = (1, 2, 3)
D0 = TopicPartition("d", 0)
SETTLED = partition(1, THREE, THREE)
MOVING = partition(1, (4, 2, 1, 3), THREE, adding=(4,), removing=(1, 3))


def shape(image: PartitionImage) -> tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return (
        image.leader,
        image.leader_epoch,
        image.replicas,
        image.adding_replicas,
        image.removing_replicas,
        image.in_sync_replicas,
    )


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        # The target's replicas come first, in its order.
        (SETTLED, [4, 5, 6], (1, 6, (4, 5, 6, 1, 2, 3), (4, 5, 6), THREE, THREE)),
        (SETTLED, [3, 4, 2], (1, 6, (3, 4, 2, 1), (4,), (1,), THREE)),
        # A target that is in sync ends the reassignment at once.
        (SETTLED, [2, 1], (1, 6, (2, 1), (), (), (1, 2))),
        (SETTLED, [3, 2], (3, 6, (3, 2), (), (), (2, 3))),
        (SETTLED, [3, 2, 1], (1, 6, (3, 2, 1), (), (), THREE)),
        (SETTLED, [1, 2, 3], (1, 5, THREE, (), (), THREE)),
        (partition(1, THREE, (1,)), [2, 3], (1, 6, (2, 3, 1), (), (1,), (1,))),
        # Another target replaces the first: what only that one added goes.
        (MOVING, [5, 2], (1, 6, (5, 2, 1, 3), (5,), (1, 3), THREE)),
        (MOVING._replace(in_sync_replicas=(1, 4)), [5, 2], (1, 6, (5, 2, 1, 3), (5,), (1, 3), (1,))),
        (MOVING._replace(leader=4, in_sync_replicas=(4, 3)), [5, 2], (3, 6, (5, 2, 1, 3), (5,), (1, 3), (3,))),
        (MOVING, [4, 2], (1, 6, (4, 2, 1, 3), (4,), (1, 3), THREE)),
        # A cancellation goes back to the original replicas, though not to their order.
        (MOVING, None, (1, 6, (2, 1, 3), (), (), THREE)),
        (MOVING._replace(leader=4, in_sync_replicas=(4, 1)), None, (1, 6, (2, 1, 3), (), (), (1,))),
        # Without a state there is nothing to copy.
        (stateless((9,)), [3, 2], (3, 0, (3, 2), (), (), (3, 2))),
    ],
)
def test_assignments_change(
    before: PartitionImage,
    target: Sequence[int] | None,
    after: tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]],
) -> None:
    draft = build_draft(ALL, t=[before])
    results, changed = reassign_partitions(draft, NOBODY, {T0: target})
    image = draft.topics["t"].partitions[0]
    assert results == {T0: None}
    assert shape(image) == after
    assert changed == ((T0,) if image != before else ())
    assert image.partition_epoch == before.partition_epoch + (image.leader_epoch != before.leader_epoch)


@pytest.mark.parametrize(
    ("before", "target", "code"),
    [
        (SETTLED, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (SETTLED, [1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (SETTLED, [1, -1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (SETTLED, [1, 7], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (SETTLED, [1, 6], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (SETTLED, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        # Only the new replica has all records.
        (MOVING._replace(leader=4, in_sync_replicas=(4,)), None, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_impossible_assignments(before: PartitionImage, target: Sequence[int] | None, code: ErrorCode) -> None:
    draft = build_draft(ALL, t=[before])
    results, changed = reassign_partitions(draft, Situation(shutting_down=frozenset({6})), {T0: target})
    problem = results[T0]
    assert problem is not None and problem.code == code and problem.detail
    assert changed == () and draft.topics["t"].partitions == (before,)


@pytest.mark.parametrize(
    ("key", "target", "code"),
    [
        (T1, [1, 2], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (U0, [1, 2], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (U0, [1, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (U0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (D0, [1, 2], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (D0, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_unknown_partitions_and_topics_to_be_deleted(
    key: TopicPartition, target: Sequence[int] | None, code: ErrorCode
) -> None:
    draft = build_draft(ALL, t=[SETTLED], d=[MOVING])
    situation = Situation(deletions={"d": DeletionProgress()})
    results, changed = reassign_partitions(draft, situation, {key: target, T0: [4]})
    problem = results[key]
    assert problem is not None and problem.code == code
    assert results[T0] is None and changed == (T0,)


def test_replicas_that_a_partition_has_may_be_down() -> None:
    draft = build_draft((1, 2, 4), t=[partition(1, THREE, (1, 2))])
    assert reassign_partitions(draft, NOBODY, {T0: [3, 4]}).results == {T0: None}


@pytest.mark.parametrize(("target", "is_allowed"), [([4, 5, 6], True), ([4, 5], False), ([1, 2, 3, 4], False)])
def test_the_number_of_replicas_may_have_to_stay(target: Sequence[int], is_allowed: bool) -> None:
    draft = build_draft(ALL, t=[SETTLED])
    problem = reassign_partitions(draft, NOBODY, {T0: target}, factor_may_change=False).results[T0]
    assert (problem and problem.code) == (None if is_allowed else ErrorCode.INVALID_REPLICATION_FACTOR)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # All of the target is in sync: the leader stays if it may, else the target's first replica leads.
        (MOVING._replace(in_sync_replicas=(1, 2, 4)), (4, 6, (4, 2), (), (), (2, 4))),
        (MOVING._replace(leader=2, in_sync_replicas=(1, 2, 4)), (2, 6, (4, 2), (), (), (2, 4))),
        # A leader that is down cannot stay.
        (
            MOVING._replace(leader=7, replicas=(7, 4, 1), removing_replicas=(1,), in_sync_replicas=(7, 4)),
            (4, 6, (7, 4), (), (), (7, 4)),
        ),
        # Not all of the target is in sync.
        (MOVING._replace(in_sync_replicas=(1, 2, 3)), (1, 5, (4, 2, 1, 3), (4,), (1, 3), THREE)),
        (SETTLED, (1, 5, THREE, (), (), THREE)),
    ],
)
def test_a_reassignment_ends_when_its_target_is_in_sync(
    before: PartitionImage,
    after: tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]],
) -> None:
    draft = build_draft(ALL, t=[before])
    changed = complete_reassignments(draft, NOBODY, [T0, T1])
    assert shape(draft.topics["t"].partitions[0]) == after
    assert changed == ((T0,) if after[1] == 6 else ())


def test_a_reassignment_waits_until_a_replica_of_its_target_can_lead() -> None:
    before = MOVING._replace(leader=-1, in_sync_replicas=(2, 4))
    assert complete_reassignments(build_draft((1, 3), t=[before]), NOBODY) == ()
    draft = build_draft((1, 2), t=[before])
    assert complete_reassignments(draft, Situation(offline_replicas={2: frozenset({T0})})) == ()
    assert complete_reassignments(draft, NOBODY) == (T0,)
    assert draft.topics["t"].partitions[0].leader == 2


def test_reassignments_are_listed() -> None:
    image = build_draft(ALL, t=[MOVING, SETTLED], u=[MOVING]).build_image()
    moving = image.topics["t"].partitions[0]
    assert list_reassignments(image) == {T0: moving, U0: moving}
    assert list_reassignments(image, [T0, T1, TopicPartition("t", 9)]) == {T0: moving}
    assert (moving.origin_replicas, moving.target_replicas) == ((2, 1, 3), (4, 2))


def test_an_old_tools_reassignment_may_name_brokers_that_are_down() -> None:
    draft = build_draft((1, 2, 3), t=[SETTLED, SETTLED, SETTLED])
    wanted = {T0: (8, 1), T1: (2, 2), U0: (1,), TopicPartition("t", 2): (1, 2)}
    results, changed = reassign_stored(draft, NOBODY, wanted)
    assert [problem and problem.code for problem in results.values()] == [
        None,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        None,
    ]
    assert changed == (T0, TopicPartition("t", 2))
    image = draft.build_image()
    assert keep_unfinished(image, wanted) == {T0: (8, 1)}
    assert keep_unfinished(image, {T0: (8,)}) == {}
    assert reassign_stored(draft, NOBODY, {T0: (8, 1)}).results == {T0: None}
    assert draft.topics["t"].partitions[0].adding_replicas == (8,)
