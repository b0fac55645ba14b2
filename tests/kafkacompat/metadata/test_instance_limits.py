"""The limits of instances where topics are created, grow and get configs."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.instance_checks import check_instance, check_instance_change
from kafkacompat.config.instances import Instance
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange, alter_configs
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import BrokerImage, MetadataImage, TopicImage
from kafkacompat.metadata.topic_changes import NewPartitions, NewTopic, TopicPlanner
from kafkacompat.wire.errors import ErrorCode, KafkaError

CONFIG = BrokerConfig.load("node.id=1\nnum.partitions=4")


class World:
    """A draft of one broker with the instance shop, which has adopted the topic old."""

    def __init__(self, **limits: str) -> None:
        self.draft = MetadataDraft(MetadataImage(brokers={1: BrokerImage(1, None, {})}))
        self.set(**limits)

    def set(self, **limits: str) -> None:
        given = {"topic.names": "past:old"} | {
            f"limit.{name.replace('_', '.')}": value for name, value in limits.items()
        }
        self.instance = Instance("shop", given)

    def find(self, topic: str) -> Instance | None:
        return self.instance if topic.startswith("shop.") or topic == "old" else None

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        given = {config.replace("_", "."): value for config, value in configs.items()}
        self.planner.create_topic(self.draft, NewTopic(name, partitions, 1, configs=given))

    def grow(self, name: str, partitions: int) -> None:
        self.planner.add_partitions(self.draft, NewPartitions(name, partitions))

    def alter(self, topic: str, **configs: str) -> None:
        operations = [
            ConfigOperation(name.replace("_", "."), ConfigOperationType.SET, value) for name, value in configs.items()
        ]
        alter_configs(self.draft, CONFIG, ResourceChange(ResourceType.TOPIC, topic, operations), self.find)

    @property
    def planner(self) -> TopicPlanner:
        return TopicPlanner(CONFIG, Random(1), find_instance=self.find)


def catch_violation(call: object, *args: object, **kwargs: object) -> str:
    assert callable(call)
    with pytest.raises(KafkaError) as caught:
        call(*args, **kwargs)
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
    assert "shop" not in caught.value.detail and "\n" not in caught.value.detail
    return caught.value.detail


def test_topics_are_limited() -> None:
    world = World(topics="2")
    world.create("shop.a")
    world.create("old")
    assert catch_violation(world.create, "shop.b").startswith("limit.topics is 2 and there are 2 topics")
    world.create("other")
    world.draft.remove_topic("shop.a")
    world.create("shop.b")


def test_a_limit_of_nothing_allows_nothing() -> None:
    catch_violation(World(topics="0").create, "shop.a")
    catch_violation(World(partitions="0").create, "shop.a")


def test_partitions_are_limited_over_all_topics() -> None:
    world = World(partitions="5")
    world.create("shop.a", 3)
    assert "3 more would be too many" in catch_violation(world.create, "shop.b", 3)
    world.create("shop.b", 1)
    catch_violation(world.grow, "shop.a", 5)
    world.grow("shop.a", 4)
    catch_violation(world.create, "shop.c", -1)


def test_many_topics_are_counted_once() -> None:
    """A request may create hundreds of topics beside thousands of others, and all of them in one turn."""
    world = World(topics="4", partitions="9")
    for number in range(3):
        world.create(f"other{number}")
    asked: list[str] = []

    class Topics(dict[str, TopicImage]):
        def values(self) -> Any:
            asked.append("all")
            return super().values()

        def __iter__(self) -> Iterator[str]:
            asked.append("all")
            return super().__iter__()

    world.draft.topics = Topics(world.draft.topics)
    for number in range(4):
        world.create(f"shop.{number}")
    for number in range(4):
        catch_violation(world.create, f"shop.more{number}")
    world.grow("shop.0", 6)
    catch_violation(world.grow, "shop.1", 2)
    assert asked == ["all"]


def test_a_lowered_limit_refuses_only_what_is_new() -> None:
    world = World()
    world.create("shop.a", 3, retention_ms="9000", max_message_bytes="900")
    world.set(topics="0", partitions="1", message_bytes="100", retention_max_ms="5000")
    world.alter("shop.a", **{"segment.bytes": "2000000"})
    catch_violation(world.alter, "shop.a", retention_ms="8000")
    catch_violation(world.grow, "shop.a", 4)
    assert len(world.draft.topics["shop.a"].partitions) == 3


@pytest.mark.parametrize(
    ("configs", "is_allowed"),
    [
        ({"max_message_bytes": "100"}, True),
        ({"max_message_bytes": "101"}, False),
        ({"retention_ms": "1000"}, True),
        ({"retention_ms": "5000"}, True),
        ({"retention_ms": "999"}, False),
        ({"retention_ms": "5001"}, False),
        ({"retention_ms": "-1"}, False),
    ],
)
def test_configs_stay_within_the_bounds(configs: dict[str, str], is_allowed: bool) -> None:
    world = World(message_bytes="100", retention_min_ms="1000", retention_max_ms="5000")
    if is_allowed:
        world.create("shop.a", 1, **configs)
        world.alter("shop.a", **configs)
    else:
        catch_violation(world.create, "shop.a", 1, **configs)
        world.create("shop.a")
        catch_violation(world.alter, "shop.a", **configs)
    world.create("a", 1, **configs)


def test_the_brokers_defaults_are_brought_within_the_bounds() -> None:
    effective = EffectiveConfig(CONFIG)
    instances = {
        "small": Instance("small", {"limit.message.bytes": "100", "limit.retention.max.ms": "5000"}),
        "long": Instance("long", {"limit.retention.min.ms": str(30 * 86_400_000)}),
    }
    effective.find_instance = instances.get
    effective.update({(ResourceType.TOPIC, "plain"): {}})
    small, long, plain = map(effective.log_config_of, ("small", "long", "plain"))
    assert (small.max_message_bytes, small.retention_ms) == (100, 5000)
    assert (long.max_message_bytes, long.retention_ms) == (plain.max_message_bytes, 30 * 86_400_000)
    assert plain.retention_ms == 7 * 86_400_000


def test_a_topics_own_value_stays_when_the_bounds_change() -> None:
    effective = EffectiveConfig(CONFIG)
    effective.find_instance = {"t": Instance("shop", {"limit.retention.max.ms": "5000"})}.get
    effective.update({(ResourceType.TOPIC, "t"): {"retention.ms": "9000"}})
    assert effective.log_config_of("t").retention_ms == 9000


def test_the_defaults_of_an_instance_stay_within_its_bounds_too() -> None:
    effective = EffectiveConfig(CONFIG)
    given = {
        "default.topic.configs": "retention.ms=9000,max.message.bytes=50,cleanup.policy=compact",
        "limit.retention.max.ms": "5000",
        "limit.message.bytes": "100",
    }
    effective.find_instance = {"shop.t": Instance("shop", given)}.get
    effective.update({(ResourceType.INSTANCE, "shop"): given})
    assert effective.find_topic_defaults("shop.t") == {
        "retention.ms": "5000",
        "max.message.bytes": "50",
        "cleanup.policy": "compact",
    }
    assert effective.log_config_of("shop.t").retention_ms == 5000
    assert effective.find_topic_defaults("t") == {}


def test_bounds_that_exclude_everything_are_refused() -> None:
    given = {"cluster.id": "c", "secret": "s", "limit.retention.min.ms": "6", "limit.retention.max.ms": "5"}
    with pytest.raises(ConfigError, match=r"it takes at most limit\.retention\.max\.ms=5"):
        check_instance_change("shop", {}, given, ())


@pytest.mark.parametrize("option", ["quota.produce.bytes.per.second", "quota.fetch.bytes.per.second"])
def test_a_throughput_of_nothing_is_refused(option: str) -> None:
    given = {"cluster.id": "c", "secret": "s", option: "0"}
    with pytest.raises(ConfigError, match=f"{option}=0 would let nothing pass: give at least 1, or -1 for no limit"):
        check_instance("shop", given, {})
