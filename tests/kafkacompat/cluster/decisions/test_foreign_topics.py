"""Topics whose values old tools have written."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkacompat.cluster.decisions.foreign_topics import accept_topics
from kafkacompat.cluster.decisions.situation import DeletionProgress, Situation
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import PartitionImage, TopicImage
from kafkacompat.wire.primitives import ZERO_UUID
from tests.kafkacompat.cluster.decisions.clusters import NOBODY, build_image, partition, stateless

OLD_ID, NEW_ID = b"t".ljust(16, b"."), b"n" * 16


def number(*partitions: PartitionImage) -> tuple[PartitionImage, ...]:
    return tuple(image._replace(partition=index) for index, image in enumerate(partitions))


def accept(
    stored: TopicImage, before: Mapping[str, TopicImage], situation: Situation = NOBODY
) -> tuple[TopicImage, MetadataDraft]:
    draft = MetadataDraft(build_image([1, 2, 3]).with_topics({"t": stored}))
    accept_topics(draft, situation, ["t", "unknown"], before, lambda topic: NEW_ID)
    return draft.topics["t"], draft


def known(*partitions: PartitionImage) -> dict[str, TopicImage]:
    return {"t": TopicImage("t", OLD_ID, number(*partitions))}


def test_a_new_topic_gets_an_id() -> None:
    stored = TopicImage("t", ZERO_UUID, number(stateless([1, 2])))
    accepted, draft = accept(stored, {})
    assert accepted == stored._replace(topic_id=NEW_ID)
    assert draft.topics_by_id == {NEW_ID: accepted}


@pytest.mark.parametrize("before", [{}, known(partition(1, [1, 2], [1, 2]))])
def test_a_topic_that_is_complete_stays_as_it_is(before: dict[str, TopicImage]) -> None:
    stored = TopicImage("t", OLD_ID, number(partition(1, [1, 2], [1, 2])))
    accepted, draft = accept(stored, before)
    assert accepted == stored
    assert not draft.list_changes({})


def test_a_known_topic_keeps_its_id_and_its_reassignment_and_grows() -> None:
    moving = partition(1, [3, 1, 2], [1, 2], adding=[3], removing=[1])
    added = stateless([3])
    stored = TopicImage("t", ZERO_UUID, number(partition(2, [1, 2], [2], epoch=6), added))
    accepted, _ = accept(stored, known(moving))
    moved = moving._replace(leader=2, leader_epoch=6, in_sync_replicas=(2,))
    assert accepted == TopicImage("t", OLD_ID, number(moved, added))


def test_partitions_that_a_tool_removes_are_kept() -> None:
    partitions = partition(1, [1], [1]), partition(2, [2], [2])
    accepted, _ = accept(TopicImage("t", OLD_ID, number(partitions[0])), known(*partitions))
    assert accepted.partitions == number(*partitions)


def test_a_topic_that_waits_for_its_deletion_does_not_grow() -> None:
    first = partition(1, [1], [1])
    situation = NOBODY.with_deletions({"t": DeletionProgress()})
    accepted, _ = accept(TopicImage("t", ZERO_UUID, number(first, stateless([2]))), known(first), situation)
    assert accepted == known(first)["t"]


def test_a_topic_of_another_id_is_another_topic() -> None:
    stored = TopicImage("t", NEW_ID, number(stateless([3])))
    accepted, _ = accept(stored, known(partition(1, [1], [1]), partition(2, [2], [2])))
    assert accepted == stored
