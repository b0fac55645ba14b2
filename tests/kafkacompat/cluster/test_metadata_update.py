"""UpdateMetadata merged into a broker's image."""

from __future__ import annotations

import pytest

from kafkacompat.cluster.metadata_update import LEADER_DURING_DELETE, apply_update
from kafkacompat.metadata.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from kafkacompat.wire.apis.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from kafkacompat.wire.compiler import decode_message, encode_message
from kafkacompat.wire.primitives import ZERO_UUID

ID, OTHER_ID = bytes(15) + b"\1", bytes(15) + b"\2"


def state(index: int, leader: int, epoch: int = 3, topic: str = "") -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        topic_name=topic,
        partition_index=index,
        controller_epoch=9,
        leader=leader,
        leader_epoch=epoch,
        isr=[2, 1],
        zk_version=7,
        replicas=[1, 2, 3],
        offline_replicas=[3],
    )


def update(*states: UpdateMetadataPartitionState, topic_id: bytes = ID) -> UpdateMetadataRequest:
    endpoint = UpdateMetadataEndpoint(host="b", port=9, listener="INTERNAL", security_protocol=0)
    return UpdateMetadataRequest(
        controller_id=2,
        controller_epoch=9,
        topic_states=[UpdateMetadataTopicState(topic_name="t", topic_id=topic_id, partition_states=list(states))],
        live_brokers=[UpdateMetadataBroker(id=2, endpoints=[endpoint], rack="r")],
    )


def test_a_request_replaces_brokers_and_merges_partitions() -> None:
    image = apply_update(MetadataImage(cluster_id="c"), update(state(0, 1), state(1, 2)))
    image = apply_update(image, update(state(1, 1, epoch=4)))
    topic = image.topics["t"]
    assert image.topics_by_id == {ID: topic}
    assert [(partition.leader, partition.leader_epoch) for partition in topic.partitions] == [(1, 3), (1, 4)]
    assert topic.partitions[0] == PartitionImage(0, 1, 3, (1, 2, 3), (2, 1), 7, offline_replicas=(3,))
    assert (image.cluster_id, image.controller_id) == ("c", 2)
    broker = image.brokers[2]
    assert (broker.rack, broker.endpoints, broker.security_protocols) == (
        "r",
        {"INTERNAL": ("b", 9)},
        {"INTERNAL": "PLAINTEXT"},
    )


def test_a_partition_that_has_not_been_sent_yet_has_no_leader() -> None:
    image = apply_update(MetadataImage(), update(state(2, 1)))
    assert [partition.leader for partition in image.topics["t"].partitions] == [NO_LEADER, NO_LEADER, 1]


def test_a_topic_goes_with_its_last_partition() -> None:
    image = apply_update(MetadataImage(), update(state(0, 1), state(1, 1)))
    image = apply_update(image, update(state(1, LEADER_DURING_DELETE)))
    assert len(image.topics["t"].partitions) == 1
    image = apply_update(image, update(state(0, LEADER_DURING_DELETE)))
    assert not image.topics and not image.topics_by_id


def test_a_topic_of_another_id_has_none_of_the_old_partitions() -> None:
    image = apply_update(MetadataImage(), update(state(0, 1), state(1, 1)))
    image = apply_update(image, update(state(0, 2), topic_id=OTHER_ID))
    assert image.topics["t"] == TopicImage("t", OTHER_ID, image.topics["t"].partitions)
    assert [partition.leader for partition in image.topics["t"].partitions] == [2]
    assert list(image.topics_by_id) == [OTHER_ID]


@pytest.mark.parametrize("version", range(9))
def test_every_version_has_the_same_effect(version: int) -> None:
    request = update(state(0, 1), topic_id=ID)
    if version < 5:
        request.topic_states, request.ungrouped_partition_states = [], [state(0, 1, topic="t")]
    if version == 0:
        request.live_brokers = [UpdateMetadataBroker(id=2, v0_host="b", v0_port=9)]
    received = decode_message(UpdateMetadataRequest, encode_message(request, version), version)
    image = apply_update(MetadataImage(), received)
    topic, broker = image.topics["t"], image.brokers[2]
    assert topic.topic_id == (ID if version >= 7 else ZERO_UUID)
    assert (topic.partitions[0].leader, topic.partitions[0].in_sync_replicas) == (1, (2, 1))
    assert list(broker.endpoints.values()) == [("b", 9)]
    assert list(broker.endpoints) == ["INTERNAL" if version >= 3 else "PLAINTEXT"]
    assert broker.rack == ("r" if version >= 2 else None)


def test_an_older_state_does_not_win() -> None:
    image = apply_update(MetadataImage(), update(state(0, 1, epoch=4)))
    older = state(0, 2, epoch=4)
    older.zk_version = 6
    assert apply_update(image, update(older)).topics == image.topics
    assert apply_update(image, update(state(0, 2, epoch=3))).topics == image.topics
    assert apply_update(image, update(state(0, NO_LEADER, epoch=4))).topics["t"].partitions[0].leader == NO_LEADER
    assert apply_update(image, update(state(0, 2, epoch=0), topic_id=OTHER_ID)).topics["t"].partitions[0].leader == 2
