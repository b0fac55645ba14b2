"""The values around decisions, and how a draft counts the writes of a state."""

from __future__ import annotations

import pytest

from kafkacompat.cluster.decisions.situation import (
    Decision,
    DeletionProgress,
    Presence,
    ReplicaStop,
    Situation,
    TopicPartition,
    change_partitions,
    find_partition,
)
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import PartitionImage
from tests.kafkacompat.cluster.decisions.clusters import (
    NOBODY,
    T0,
    T1,
    U0,
    build_draft,
    build_image,
    partition,
    stateless,
)

SITUATION = Situation(frozenset({2}), {3: frozenset({T0})}, {"t": DeletionProgress(), "u": DeletionProgress(True)})


def test_who_is_online_and_who_is_present() -> None:
    presence = Presence((1, 2, 3, 4), SITUATION, absent=[4])
    assert presence.list_online(T0, (5, 4, 3, 2, 1)) == [1]
    assert presence.list_online(T1, (3, 2, 1)) == [3, 1]
    assert [node for node in (1, 2, 3, 4, 5, -1) if presence.is_present(T0, node)] == [1, 2]


def test_a_queued_topic_works_until_its_deletion_starts() -> None:
    assert [SITUATION.is_queued(topic) for topic in "tux"] == [True, True, False]
    assert [SITUATION.is_deleting(topic) for topic in "tux"] == [False, True, False]


def test_what_is_known_of_brokers_and_deletions_changes() -> None:
    assert SITUATION.without_brokers([2, 3]) == Situation(deletions=SITUATION.deletions)
    assert SITUATION.with_shutting_down(1).shutting_down == {1, 2}
    assert SITUATION.with_offline_replicas(3, [U0]).offline_replicas == {3: {U0}}
    assert SITUATION.with_deletions({"t": None, "x": DeletionProgress()}).deletions.keys() == {"u", "x"}


def test_decisions_are_joined() -> None:
    first = Decision(NOBODY, (T0, T1), (ReplicaStop(1, T0),), ("a",))
    second = Decision(SITUATION, (T1, U0), (ReplicaStop(2, T0),), ("b",))
    joined = Decision(SITUATION, (T0, T1, U0), (ReplicaStop(1, T0), ReplicaStop(2, T0)), ("a", "b"))
    assert second.after(first) == joined


def test_only_partitions_that_change_are_put() -> None:
    draft = build_draft((1,), t=[partition(1, (1,), (1,)), partition(-1, (1,), (1,))], u=[partition(1, (1,), (1,))])
    untouched = draft.topics["u"]
    keys = [T1, T1, TopicPartition("t", 7), TopicPartition("x", 0), T0, U0]
    changed = change_partitions(draft, lambda key, before: before._replace(leader=1), keys)
    assert changed == (T1,)
    assert draft.topics["u"] is untouched
    assert find_partition(draft, T1) == partition(1, (1,), (1,))._replace(partition=1, partition_epoch=8)
    assert find_partition(draft, TopicPartition("t", -1)) is None


@pytest.mark.parametrize(
    ("before", "changes", "partition_epoch"),
    [
        (partition(1, (1, 2), (1,)), [{"leader": 2}, {"leader_epoch": 9}], 8),
        (partition(1, (1, 2), (1,)), [{"leader": 2}, {"leader": 1}], 7),
        (partition(1, (1, 2), (1,)), [{"is_recovering": True}], 8),
        (partition(1, (1, 2), (1,)), [{"replicas": (1, 2, 3)}, {"adding_replicas": (3,)}], 7),
        (stateless((1, 2)), [{"leader": 1, "leader_epoch": 0, "in_sync_replicas": (1,)}], 0),
        (stateless((1, 2)), [{"replicas": (2,)}], -1),
    ],
)
def test_a_draft_counts_one_write_of_a_changed_state(
    before: PartitionImage, changes: list[dict[str, object]], partition_epoch: int
) -> None:
    draft = build_draft((1, 2), t=[before])
    for change in changes:
        after = PartitionImage(**{**draft.topics["t"].partitions[0]._asdict(), **change})
        draft.put_partitions("t", [after._replace(partition_epoch=99)])
    assert draft.topics["t"].partitions[0].partition_epoch == partition_epoch


def test_a_partition_that_the_draft_created_has_its_first_epoch() -> None:
    draft = MetadataDraft(build_image((1,)))
    draft.put_topic(build_image((1,), t=[partition(1, (1,), (1,)), stateless((1,))]).topics["t"])
    draft.put_partitions("t", [image._replace(leader_epoch=8) for image in draft.topics["t"].partitions])
    assert [image.partition_epoch for image in draft.topics["t"].partitions] == [0, -1]
