"""How many replicas the coordinators' topics get in clusters of any size."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.groups.offsets_topic import new_offsets_topic
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import BrokerImage, MetadataImage
from kafkacompat.metadata.topic_changes import NewTopic, TopicPlanner
from kafkacompat.transactions.topic import TRANSACTION_TOPIC, new_transaction_topic
from kafkacompat.wire.errors import ErrorCode, KafkaError

NewInternalTopic = Callable[[BrokerConfig], NewTopic]


def create_topic(new_topic: NewInternalTopic, brokers: int, properties: str = "") -> tuple[int, MetadataDraft]:
    """Plan the topic in a cluster; return how many replicas its partitions have, and the draft."""
    config = BrokerConfig.load(f"node.id=1\n{properties}")
    draft = MetadataDraft(MetadataImage(brokers={node: BrokerImage(node, None, {}) for node in range(1, brokers + 1)}))
    topic = TopicPlanner(config, Random(1)).create_topic(draft, new_topic(config))
    (replicas,) = {len(partition.replicas) for partition in topic.partitions}
    return replicas, draft


@pytest.mark.parametrize("new_topic", [new_offsets_topic, new_transaction_topic])
@pytest.mark.parametrize(("brokers", "replicas"), [(1, 1), (2, 2), (3, 3), (4, 3)])
def test_an_unset_factor_is_that_of_the_brokers_up_to_three(
    new_topic: NewInternalTopic, brokers: int, replicas: int
) -> None:
    assert create_topic(new_topic, brokers)[0] == replicas


@pytest.mark.parametrize(
    ("new_topic", "name"),
    [
        (new_offsets_topic, "offsets.topic.replication.factor"),
        (new_transaction_topic, "transaction.state.log.replication.factor"),
    ],
)
def test_a_set_factor_is_strict(new_topic: NewInternalTopic, name: str) -> None:
    with pytest.raises(KafkaError) as refused:
        create_topic(new_topic, 2, f"{name}=3")
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert create_topic(new_topic, 3, f"{name}=2")[0] == 2


@pytest.mark.parametrize(
    ("brokers", "properties", "minimum"),
    [
        (1, "", "1"),
        (3, "", "2"),
        (1, "transaction.state.log.min.isr=2", "2"),
        (3, "transaction.state.log.min.isr=1", "1"),
    ],
)
def test_an_unset_minimum_of_in_sync_replicas_can_be_reached(brokers: int, properties: str, minimum: str) -> None:
    _, draft = create_topic(new_transaction_topic, brokers, properties)
    assert draft.build_image().config(ResourceType.TOPIC, TRANSACTION_TOPIC)["min.insync.replicas"] == minimum
