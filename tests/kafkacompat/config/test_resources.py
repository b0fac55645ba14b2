"""Configs of groups, client metrics subscriptions and running brokers."""

from __future__ import annotations

import pytest

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.resources import check_client_metrics_configs, check_group_configs

BROKER = BrokerConfig.load("node.id=1")


def test_known_configs_of_groups_and_metrics_are_accepted() -> None:
    check_group_configs(BROKER, {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "earliest"})
    check_client_metrics_configs({"match": "client_id=app.*,client_source_port=1", "interval.ms": "100"})


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"retention.ms": "1"}, "retention.ms is not a config of groups"),
        ({"consumer.session.timeout.ms": "0"}, "it takes a whole number of 1 or more"),
        ({"consumer.session.timeout.ms": "1000"}, "it takes at least group.consumer.min.session.timeout.ms=45000"),
        ({"consumer.session.timeout.ms": "90000"}, "it takes at most group.consumer.max.session.timeout.ms=60000"),
        ({"streams.num.standby.replicas": "3"}, "it takes at most group.streams.max.standby.replicas=2"),
    ],
)
def test_refuses_group_configs(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        check_group_configs(BROKER, overrides)
    assert sentence in str(refusal.value)


def test_a_session_outlasts_a_heartbeat() -> None:
    text = "node.id=1\ngroup.share.max.heartbeat.interval.ms=60000\ngroup.share.min.session.timeout.ms=1"
    with pytest.raises(ConfigError, match=r"more than share\.heartbeat\.interval\.ms=50000"):
        check_group_configs(BrokerConfig.load(text), {"share.heartbeat.interval.ms": "50000"})


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"pattern": "x"}, "pattern is not a config of client metrics subscriptions"),
        ({"interval.ms": "99"}, "it takes a whole number from 100 to 3600000"),
        ({"match": "colour=red"}, "it takes a list of name=pattern"),
        ({"match": "client_id=(("}, "it takes a list of name=pattern"),
        ({"match": "client_id=a=b"}, "it takes a list of name=pattern"),
        ({"match": "client_id"}, "it takes a list of name=pattern"),
    ],
)
def test_refuses_client_metrics_configs(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        check_client_metrics_configs(overrides)
    assert sentence in str(refusal.value)
