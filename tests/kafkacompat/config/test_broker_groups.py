"""Groups of brokers: how they are written, and what is refused."""

from __future__ import annotations

import pytest

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.broker_groups import check_instance_groups, read_broker_groups
from kafkacompat.config.dynamic import check_broker_configs
from kafkacompat.config.instances import Instance


def make_config(groups: str, **properties: str) -> BrokerConfig:
    return BrokerConfig(
        {
            "node.id": "1",
            "log.dirs": "/data",
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "zookeeper.connect": "zookeeper",
            "kafkacompat.broker.groups": groups,
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
    )


def test_a_group_has_ids_and_ranges_of_ids() -> None:
    config = make_config("a:1-3,b:4+6+8-9")
    assert read_broker_groups(config) == {"a": {1, 2, 3}, "b": {4, 6, 8, 9}}
    assert read_broker_groups(make_config("")) == {}


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("a", "takes name:ids"),
        ("a:", "takes name:ids"),
        ("a:x", "takes name:ids"),
        ("a:3-1", "takes name:ids"),
        ("a:1-99999999999", "takes name:ids"),
        (":1", "takes name:ids"),
        ("a.b:1", "takes name:ids"),
        ("a:1,a:2", "has the group a twice"),
        ("a:1-2,b:2-3", "gives the group b the broker 2 and the group a too"),
        ("a:1+1", "gives the group a the broker 1 twice"),
        ("a:0-2147483647", "more than 100 brokers"),
        ("a:1-101", "more than 100 brokers"),
    ],
)
def test_groups_that_cannot_be_are_refused(groups: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_config(groups)


def test_the_size_of_a_group_is_limited() -> None:
    make_config("a:1-2", kafkacompat_broker_group_max_brokers="2")
    with pytest.raises(ConfigError, match="more than 2 brokers"):
        make_config("a:1-2+5", kafkacompat_broker_group_max_brokers="2")


def test_groups_are_the_same_for_all_brokers() -> None:
    check_broker_configs({"kafkacompat.broker.groups": "a:1"}, per_broker=False)
    with pytest.raises(ConfigError, match="the same for all brokers"):
        check_broker_configs({"kafkacompat.broker.groups": "a:1"}, per_broker=True)


def test_an_instance_lives_in_groups_that_exist() -> None:
    groups = read_broker_groups(make_config("alpha:1,beta:2,gamma:3"))
    check_instance_groups(Instance("shop", {"placement.group": "alpha,beta"}), groups)
    with pytest.raises(ConfigError, match=r"there is no group alpa \(did you mean alpha\?\)"):
        check_instance_groups(Instance("shop", {"placement.group": "alpa"}), groups)
    with pytest.raises(ConfigError, match="names 3 groups"):
        check_instance_groups(Instance("shop", {"placement.group": "alpha,beta,gamma"}), groups)
