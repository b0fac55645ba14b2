"""The settings of consumer groups: the broker's properties and a group's own configs."""

from __future__ import annotations

from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.groups.consumer.settings import BoundedNumber, ConsumerGroupSettings, GroupConfigs
from kafkacompat.metadata.image import ImageHolder, MetadataImage
from tests.kafkacompat.groups.consumer.support import ConsumerWorld


def make_settings(**properties: str) -> ConsumerGroupSettings:
    given = {f"group.consumer.{name.replace('_', '.')}": value for name, value in properties.items()}
    config = BrokerConfig({"node.id": "1", "process.roles": "broker,controller", **given})
    return ConsumerGroupSettings.from_config(config, lambda: config)


def test_the_defaults_are_those_of_the_properties() -> None:
    read, default = make_settings(), ConsumerGroupSettings()
    assert read.assignment_interval_ms() == default.assignment_interval_ms()
    for name in vars(default).keys() - {"assignment_interval_ms"}:
        assert getattr(read, name) == getattr(default, name)


def test_properties_are_read() -> None:
    read = make_settings(
        session_timeout_ms="50000",
        max_size="7",
        assignors="org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform",
        migration_policy="upgrade",
        regex_refresh_interval_ms="10000",
    )
    assert read.session_timeout_ms == BoundedNumber(50_000, 45_000, 60_000)
    assert (read.max_size, read.assignors, read.regex_refresh_interval_ms) == (7, ("range", "uniform"), 10_000)
    assert (read.may_upgrade, read.may_downgrade, read.accepts_classic_members) == (True, False, True)


def test_a_group_may_have_its_own_within_bounds() -> None:
    holder = ImageHolder()
    own = {"consumer.session.timeout.ms": "55000", "consumer.heartbeat.interval.ms": "1"}
    holder.publish(MetadataImage(configs={(ResourceType.GROUP, "g"): own}))
    configs = GroupConfigs(ConsumerGroupSettings(), holder)
    assert configs.session_timeout_ms("g") == 55_000
    assert configs.heartbeat_interval_ms("g") == 5_000
    assert configs.assignment_interval_ms("g") == 1_000
    assert configs.session_timeout_ms("other") == 45_000


def test_without_an_interval_partitions_are_shared_out_at_once_whatever_the_clock_says() -> None:
    without = ConsumerGroupSettings(assignment_interval_ms=lambda: BoundedNumber(0, 0, 15_000))
    world = ConsumerWorld(consumer_settings=without)
    world.come("m1", "t")
    world.clock.rightNow -= 3600
    world.come("m2", "t")
    assert world.contents().assignment_epoch == world.contents().epoch == 3
