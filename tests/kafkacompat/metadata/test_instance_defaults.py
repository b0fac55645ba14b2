"""The defaults of topic configs that an instance has: checked, in effect at once, and under the configs of single topics."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkacompat.config import ConfigError
from kafkacompat.config.instances import Instance
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.metadata.instance_defaults import InstanceDefaults
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.metadata.node import Node

DEFAULTS = "default.topic.configs"


def start() -> Node:
    """Start a node with an instance that has one adopted topic."""
    node = Node()
    given = {"cluster.id": "c", "secret": "s", "topic.names": "old:legacy"}
    operations = [ConfigOperation(name, ConfigOperationType.SET, text) for name, text in given.items()]
    change = ResourceChange(ResourceType.INSTANCE, "shop", operations)
    assert outcome(node.controller.alter_configs([change])) == [None]
    return node


def test_a_change_takes_effect_on_the_topics_of_the_instance_only() -> None:
    node = start()
    for topic in ("shop.orders", "legacy", "shopping", "other.orders"):
        node.create(topic)
    node.events.notifications.clear()
    assert (
        node.configure(ResourceType.INSTANCE, "shop", DEFAULTS, "retention.ms=5,cleanup.policy=compact,delete") is None
    )
    assert sorted(node.events.notifications) == [("configure", "legacy"), ("configure", "shop.orders")]
    for topic in ("shop.orders", "legacy"):
        config = node.effective.log_config_of(topic)
        assert (config.retention_ms, config.cleanup_policy) == (5, frozenset({"compact", "delete"}))
    assert node.effective.log_config_of("shopping").retention_ms == 604_800_000
    assert node.effective.log_config_of("other.orders").retention_ms == 604_800_000


def test_another_property_of_the_instance_reconfigures_nothing() -> None:
    node = start()
    node.create("shop.orders")
    node.events.notifications.clear()
    assert node.configure(ResourceType.INSTANCE, "shop", "limit.topics", "9") is None
    assert node.events.notifications == []


def test_the_configs_of_a_topic_win() -> None:
    node = start()
    node.create("shop.orders", retention_ms="7")
    assert node.configure(ResourceType.INSTANCE, "shop", DEFAULTS, "retention.ms=5,segment.bytes=2000000") is None
    config = node.effective.log_config_of("shop.orders")
    assert (config.retention_ms, config.segment_bytes) == (7, 2_000_000)
    assert node.configure(ResourceType.TOPIC, "shop.orders", "segment.bytes", "3000000") is None
    assert node.effective.log_config_of("shop.orders").segment_bytes == 3_000_000


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("retention.ms=soon", "retention.ms=soon is not valid"),
        ("no.such.config=1", "no.such.config is not a topic config"),
        ("retention.ms", "'retention.ms': it takes name=value"),
        ("=1", "'=1': it takes name=value"),
        ("retention.ms=1,retention.ms=2", "it is there twice"),
        ("unclean.leader.election.enable=true", "it is set for each topic by itself"),
        ("min.compaction.lag.ms=5,max.compaction.lag.ms=4", "it takes at most max.compaction.lag.ms=4"),
    ],
)
def test_invalid_defaults_are_refused(value: str, reason: str) -> None:
    node = start()
    node.create("shop.orders")
    refusal = node.configure(ResourceType.INSTANCE, "shop", DEFAULTS, value)
    assert refusal is not None and refusal.code == ErrorCode.INVALID_CONFIG and reason in (refusal.detail or "")
    assert not node.effective.instance_defaults


def test_damaged_defaults_leave_the_others_in_effect(caplog: pytest.LogCaptureFixture) -> None:
    configs: dict[tuple[int, str], Mapping[str, str]] = {
        (ResourceType.INSTANCE, "bad"): {DEFAULTS: "nonsense"},
        (ResourceType.INSTANCE, "good"): {DEFAULTS: "retention.ms=5", "name.prefix": "g-"},
    }
    defaults = InstanceDefaults(configs)
    assert defaults.find("g-orders") == {"retention.ms": "5"}
    assert defaults.find("bad.orders") == {}
    assert "The instance bad has no default topic configs" in caplog.text


@pytest.mark.parametrize(
    ("text", "configs"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        ("a=x,y,b=", {"a": "x,y", "b": ""}),
        ("a=b=c", {"a": "b=c"}),
    ],
)
def test_the_form_of_defaults(text: str, configs: Mapping[str, str]) -> None:
    assert Instance("shop", {DEFAULTS: text}).default_topic_configs == configs


def test_a_value_without_a_name() -> None:
    with pytest.raises(ConfigError, match="it takes name=value"):
        _ = Instance("shop", {DEFAULTS: "x,a=1"}).default_topic_configs
