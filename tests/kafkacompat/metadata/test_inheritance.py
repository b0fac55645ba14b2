"""What a new store begins with when there are partitions already."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import ClientConfig, make_entity, make_user_entity
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import MetadataImage, PartitionImage
from kafkacompat.metadata.inheritance import (
    INTERNAL_CONFIGS,
    KEEP_EVERYTHING,
    PRODUCER_ID_LEAP,
    Inheritance,
    InheritedPartition,
    list_unconfigured_topics,
)
from kafkacompat.metadata.kraft import KraftCluster
from kafkacompat.security.principals import Principal
from kafkacompat.security.tokens import TokenInfo
from kafkacompat.wire.primitives import ZERO_UUID

ID, OTHER_ID = bytes(range(16)), bytes(range(1, 17))
TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER


def make_partition(
    topic: str, index: int, topic_id: bytes = ID, epoch: int = -1, producer_id: int = -1
) -> InheritedPartition:
    return InheritedPartition(topic, index, topic_id, epoch, producer_id)


def make_cluster(*topics: tuple[str, bytes, Sequence[int]]) -> KraftCluster:
    """Topics with the leader epochs of their partitions."""
    made = KraftCluster()
    for name, topic_id, epochs in topics:
        made.topics[topic_id] = name
        made.leader_epochs.update({(topic_id, index): epoch for index, epoch in enumerate(epochs)})
    return made


def inherit_metadata(
    folders: Sequence[InheritedPartition], cluster: KraftCluster | None = None
) -> tuple[MetadataImage, Inheritance]:
    draft = MetadataDraft(MetadataImage())
    inheritance = Inheritance(BrokerConfig.load("node.id=1"), folders, cluster, Random(1))
    inheritance.fill_draft(draft)
    return draft.build_image(), inheritance


def test_nothing_comes_of_nothing() -> None:
    image, inheritance = inherit_metadata([])
    assert (image, inheritance.next_producer_id, inheritance.warnings) == (MetadataImage(), 0, [])


def test_topics_come_from_folders_with_their_ids_and_epochs() -> None:
    image, inheritance = inherit_metadata(
        [make_partition("t", 1, epoch=4), make_partition("t", 0), make_partition("u", 0, ZERO_UUID)]
    )
    topic = image.topics["t"]
    assert topic.topic_id == ID
    assert topic.partitions == tuple(
        PartitionImage(index, 1, epoch, (1,), (1,), 0) for index, epoch in ((0, 0), (1, 4))
    )
    assert image.topics["u"].topic_id not in (ZERO_UUID, ID)
    assert inheritance.warnings == []


def test_unknown_configs_keep_all_data_except_kafkas_internal_topics() -> None:
    image, _ = inherit_metadata(
        [make_partition(name, 0, ZERO_UUID) for name in ("t", "__consumer_offsets", "__share_group_state")]
    )
    assert image.configs == {
        (TOPIC, "t"): KEEP_EVERYTHING,
        (TOPIC, "__consumer_offsets"): INTERNAL_CONFIGS,
        (TOPIC, "__share_group_state"): KEEP_EVERYTHING,
    }
    assert list_unconfigured_topics(image) == ["__share_group_state", "t"]


def test_of_two_topics_of_a_name_the_one_with_more_folders_is_meant() -> None:
    folders = [
        make_partition("t", 0),
        make_partition("t", 1),
        make_partition("t", 2, OTHER_ID),
        make_partition("t", 3, OTHER_ID),
        make_partition("t", 4),
    ]
    image, inheritance = inherit_metadata(folders)
    assert image.topics["t"].topic_id == ID
    assert len(image.topics["t"].partitions) == 5
    assert inheritance.warnings == []


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        (make_partition("photos", 20241231), "20241232 partitions, but 20241231 folders are missing"),
        (make_partition("my photos", 0), "other characters"),
    ],
)
def test_folders_that_are_no_partitions_are_left_out(folder: InheritedPartition, words: str) -> None:
    image, inheritance = inherit_metadata([folder])
    assert image.topics == {}
    (warning,) = inheritance.warnings
    assert words in warning


def test_the_metadata_of_kafkas_controllers_wins() -> None:
    """A topic they know has their partitions and at least their epochs; one they do not know was deleted."""
    cluster = make_cluster(("t", ID, [3, 7]), ("empty", OTHER_ID, [0]))
    cluster.configs = {(TOPIC, "t"): {"retention.ms": "5", "no.such": "1", "segment.bytes": "x"}}
    folders = [
        make_partition("t", 0, epoch=9),
        make_partition("t", 1, epoch=2),
        make_partition("t", 2),
        make_partition("gone", 0, bytes(range(2, 18))),
    ]
    image, inheritance = inherit_metadata(folders, cluster)
    assert {name: len(topic.partitions) for name, topic in image.topics.items()} == {"t": 2, "empty": 1}
    assert [partition.leader_epoch for partition in image.topics["t"].partitions] == [9, 7]
    assert image.configs == {(TOPIC, "t"): {"retention.ms": "5"}}
    assert list_unconfigured_topics(image) == []
    assert [warning.partition(":")[0] for warning in inheritance.warnings] == [
        "Left out no.such=1 of topic t",
        "Left out segment.bytes=x of topic t",
    ]


def test_configs_valid_only_together_are_kept_together() -> None:
    cluster = make_cluster(("t", ID, [0]))
    configs = {"min.compaction.lag.ms": "9000000", "max.compaction.lag.ms": "9000001"}
    cluster.configs = {(TOPIC, "t"): configs}
    draft = MetadataDraft(MetadataImage())
    config = BrokerConfig({"node.id": "1", "log.cleaner.max.compaction.lag.ms": "1000"})
    Inheritance(config, [make_partition("t", 0)], cluster, Random(1)).fill_draft(draft)
    assert draft.build_image().configs == {(TOPIC, "t"): configs}


def test_configs_left_after_dropping_bad_ones_delete_nothing() -> None:
    cluster = make_cluster(("t", ID, [0]))
    cluster.configs = {
        (TOPIC, "t"): {"retention.ms": "for ever", "cleanup.policy": "compact", "segment.bytes": "9999999"}
    }
    image, _ = inherit_metadata([make_partition("t", 0)], cluster)
    assert image.configs == {(TOPIC, "t"): {"segment.bytes": "9999999", **KEEP_EVERYTHING}}
    assert list_unconfigured_topics(image) == ["t"]


def test_configs_of_brokers_and_clients_are_inherited() -> None:
    cluster = make_cluster()
    cluster.configs = {(BROKER, ""): {"min.insync.replicas": "1"}, (BROKER, "1"): {"a": "b"}, (BROKER, "2"): {"a": "b"}}
    cluster.clients = {
        make_user_entity("u"): ClientConfig({"producer_byte_rate": 1.0}),
        make_entity([("planet", "x")]): ClientConfig({"producer_byte_rate": 1.0}),
    }
    image, _ = inherit_metadata([], cluster)
    assert image.configs == {(BROKER, ""): {"min.insync.replicas": "1"}, (BROKER, "1"): {"a": "b"}}
    assert list(image.clients) == [make_user_entity("u")]


def test_producer_ids_begin_far_from_those_that_kafka_gives() -> None:
    cluster = make_cluster(("t", ID, [0]))
    cluster.next_producer_id = 5000
    assert inherit_metadata([make_partition("t", 0, producer_id=70)])[1].next_producer_id == 71 + PRODUCER_ID_LEAP
    assert (
        inherit_metadata([make_partition("t", 0, producer_id=70)], cluster)[1].next_producer_id
        == 5000 + PRODUCER_ID_LEAP
    )
    assert inherit_metadata([make_partition("t", 0)])[1].next_producer_id == PRODUCER_ID_LEAP


def test_tokens_come_from_the_controllers() -> None:
    """A token stays valid if the secret key is the same, from which every broker derives the token's secret."""
    cluster = make_cluster(("t", ID, [0]))
    alice = Principal("User", "alice")
    token = cluster.tokens["a"] = TokenInfo("a", alice, alice, (), 1, 2, 3)
    image, _ = inherit_metadata([make_partition("t", 0)], cluster)
    assert image.tokens == {"a": token}
