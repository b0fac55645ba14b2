"""The brokers that may have an instance's replicas, and those that its clients see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from kafkacompat.tenancy.placement import limit_hosts, list_visible_brokers
from kafkacompat.tenancy.registry import Instances

RACKS = {1: "x", 2: "y", 3: "x", 4: "y", 5: "x"}
GROUPS = {"a": frozenset({1, 2, 99}), "b": frozenset({3, 4})}
CONFIG = BrokerConfig(
    {
        "node.id": "1",
        "log.dirs": "/data",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "zookeeper.connect": "zookeeper",
        "kafkacompat.broker.groups": "a:1+2+99,b:3-4",
    }
)
NO_GROUPS = BrokerConfig({**CONFIG.given, "kafkacompat.broker.groups": ""})


def build_topic(number: int, name: str, *replicas: int, leader: int | None = None) -> TopicImage:
    partition = PartitionImage(0, replicas[0] if leader is None else leader, 0, replicas, replicas, 0)
    return TopicImage(name, number.to_bytes(16, "big"), (partition,))


def build_image(instances: Mapping[str, Mapping[str, str]], *topics: TopicImage, live: str = "12345") -> MetadataImage:
    needed = {"cluster.id": "c", "secret": "s"}
    return MetadataImage(
        brokers={node: BrokerImage(node, RACKS[node], {}) for node in map(int, live)},
        configs={(ResourceType.INSTANCE, name): {**needed, **given} for name, given in instances.items()},
    ).with_topics({topic.name: topic for topic in topics})


def list_hosts(image: MetadataImage, topic: str, config: BrokerConfig = CONFIG) -> object:
    return limit_hosts(MetadataDraft(image), config)(topic)


def list_seen(image: MetadataImage, name: str, groups: Mapping[str, frozenset[int]] = GROUPS) -> set[int]:
    instances = Instances()
    instances.update(image)
    return set(list_visible_brokers(instances.by_name[name], instances, image, groups))


@pytest.mark.parametrize(
    ("given", "hosts"),
    [
        ({"placement.group": "a"}, {1, 2}),
        ({"placement.group": "b"}, {3, 4}),
        ({"placement.group": "a,b"}, {3, 4}),
        ({"placement.group": "b,a"}, {1, 2}),
        ({"placement.group": "a", "placement.racks": "y,z"}, {2}),
        ({"placement.group": "gone"}, set()),
        ({}, {5}),
        ({"placement.racks": "y"}, set()),
    ],
)
def test_replicas_are_placed_on_live_brokers_of_the_last_group(given: dict[str, str], hosts: set[int]) -> None:
    assert list_hosts(build_image({"shop": given}), "shop.t") == hosts


def test_only_racks_limit_an_instance_where_there_are_no_groups() -> None:
    image = build_image({"shop": {}, "blog": {"placement.racks": "x"}})
    assert list_hosts(image, "shop.t", NO_GROUPS) is None
    assert list_hosts(image, "blog.t", NO_GROUPS) == {1, 3, 5}


def test_topics_belong_to_instances_by_prefix_or_by_adoption() -> None:
    instances = {
        "shop": {"placement.group": "a", "topic.names": "old:legacy,blog-2.x"},
        "blog": {"placement.group": "b", "name.prefix": "weblog-"},
    }
    image = build_image(instances)
    assert list_hosts(image, "legacy") == list_hosts(image, "blog-2.x") == list_hosts(image, "shop.legacy") == {1, 2}
    assert list_hosts(image, "weblog-t") == {3, 4}
    for topic in ("blog.t", "shop", "shopping.t", "t", "__consumer_offsets"):
        assert list_hosts(image, topic) is None


def test_clients_see_their_groups_what_has_their_replicas_and_coordinators() -> None:
    topics = (
        build_topic(1, "shop.t", 1, 4),
        build_topic(2, "blog.t", 3, 4),
        build_topic(3, "__consumer_offsets", 5, 3),
        build_topic(4, "__transaction_state", 2, leader=-1),
    )
    image = build_image({"shop": {"placement.group": "a"}, "blog": {"placement.group": "b"}, "rest": {}}, *topics)
    assert list_seen(image, "shop") == {1, 2, 4, 5}
    assert list_seen(image, "blog") == {3, 4, 5}
    assert list_seen(image, "rest") == {5}


def test_clients_see_both_groups_during_a_move_and_all_brokers_without_groups() -> None:
    image = build_image({"shop": {"placement.group": "a,b", "placement.racks": "x"}, "blog": {}})
    assert list_seen(image, "shop") == {1, 3}
    assert list_seen(image, "blog", {}) == {1, 2, 3, 4, 5}


def test_clients_of_a_group_that_is_down_see_the_brokers_that_are_alive() -> None:
    image = build_image({"shop": {"placement.group": "a"}}, build_topic(1, "shop.t", 1, 2, leader=-1), live="345")
    assert list_seen(image, "shop") == {3, 4, 5}


def test_the_visible_brokers_follow_topics_and_brokers() -> None:
    instances = Instances()
    images = [
        build_image({"shop": {"placement.group": "a"}}, build_topic(1, "shop.t", 1, 2)),
        build_image({"shop": {"placement.group": "a"}}, build_topic(1, "shop.t", 1, 4)),
        build_image({"shop": {"placement.group": "a"}}, build_topic(1, "shop.t", 1, 4), live="1345"),
    ]
    seen = []
    for version, image in enumerate(images):
        image = replace(image, version=version)
        instances.update(image)
        view = instances.by_name["shop"]
        seen.append(set(list_visible_brokers(view, instances, image, GROUPS)))
        assert list_visible_brokers(view, instances, image, GROUPS) is view.visible_brokers
    assert seen == [{1, 2}, {1, 2, 4}, {1, 4}]
