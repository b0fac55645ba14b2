"""Apache Kafka 4.3.1's tools for configurations, features and the cluster: kafka-configs.sh and its neighbours."""

from __future__ import annotations

import re

import pytest

from compat_tests.brokers import Broker
from compat_tests.java_tools import run_java
from compat_tests.waiting import until

pytestmark = pytest.mark.tools

TOOLS = "org.apache.kafka.tools"
CONFIGS = "kafka.admin.ConfigCommand"
CLIENT_METRICS = f"{TOOLS}.ClientMetricsCommand"
FEATURES = f"{TOOLS}.FeatureCommand"


def run_tool(broker: Broker, main_class: str, *arguments: str) -> str:
    """Run a tool and return its standard output; a non-zero exit fails the test."""
    return run_java(main_class, ["--bootstrap-server", broker.bootstrap, *arguments]).stdout


def run_failing_tool(broker: Broker, main_class: str, *arguments: str) -> str:
    """Run a tool that must fail and return its output."""
    done = run_java(main_class, ["--bootstrap-server", broker.bootstrap, *arguments], check=False)
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


Entity = tuple[str, ...]


def alter_config(broker: Broker, entity: Entity, *change: str) -> None:
    assert "Completed updating" in run_tool(broker, CONFIGS, *entity, "--alter", *change)


def describe_config(broker: Broker, entity: Entity, *more: str) -> str:
    return run_tool(broker, CONFIGS, *entity, "--describe", *more)


@pytest.mark.parametrize(
    ("entity", "key", "value", "shown"),
    [
        (
            ("--entity-type", "brokers", "--entity-name", "1"),
            "log.flush.interval.messages",
            "70000",
            "DYNAMIC_BROKER_CONFIG:log.flush.interval.messages=70000",
        ),
        (
            ("--entity-type", "brokers", "--entity-default"),
            "log.flush.interval.messages",
            "80000",
            "DYNAMIC_DEFAULT_BROKER_CONFIG:log.flush.interval.messages=80000",
        ),
        (
            ("--entity-type", "groups", "--entity-name", "tools"),
            "consumer.session.timeout.ms",
            "50000",
            "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000, "
            "DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000",
        ),
        (
            ("--entity-type", "client-metrics", "--entity-name", "tools"),
            "interval.ms",
            "5000",
            "DYNAMIC_CLIENT_METRICS_CONFIG:interval.ms=5000",
        ),
    ],
    ids=["broker", "all-brokers", "group", "client-metrics"],
)
def test_a_config_is_added_described_and_deleted(
    broker: Broker, entity: Entity, key: str, value: str, shown: str
) -> None:
    alter_config(broker, entity, "--add-config", f"{key}={value}")
    until(lambda: f"{key}={value} sensitive=false" in describe_config(broker, entity))
    assert shown in describe_config(broker, entity)
    alter_config(broker, entity, "--delete-config", key)
    until(lambda: f"{key}={value}" not in describe_config(broker, entity))


def test_a_static_property_cannot_be_altered(broker: Broker) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    assert "num.partitions" in run_failing_tool(broker, CONFIGS, *entity, "--alter", "--add-config", "num.partitions=9")
    assert "num.io.threads" in run_failing_tool(
        broker, CONFIGS, *entity, "--alter", "--add-config", "num.io.threads=99"
    )


def test_levels_of_loggers(broker: Broker) -> None:
    loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
    level = re.search(r"root=(\w+) sensitive=false", describe_config(broker, loggers))
    assert level is not None
    alter_config(broker, loggers, "--add-config", "root=FATAL")
    assert "root=FATAL sensitive=false" in describe_config(broker, loggers)
    alter_config(broker, loggers, "--add-config", f"root={level[1]}")
    assert "no.such.logger" in run_failing_tool(
        broker, CONFIGS, *loggers, "--alter", "--add-config", "no.such.logger=INFO"
    )


def test_client_metrics_subscriptions(broker: Broker) -> None:
    subscription = ("--name", "subscription")
    settings = ("--metrics", "org.apache.kafka.producer.", "--interval", "30000", "--match", "client_id=a.*")
    run_tool(broker, CLIENT_METRICS, "--alter", *subscription, *settings)
    until(lambda: "subscription" in run_tool(broker, CLIENT_METRICS, "--list").splitlines())
    shown = run_tool(broker, CLIENT_METRICS, "--describe", *subscription)
    for line in ("interval.ms=30000", "match=client_id=a.*", "metrics=org.apache.kafka.producer."):
        assert line in shown
    run_tool(broker, CLIENT_METRICS, "--delete", *subscription)
    until(lambda: "subscription" not in run_tool(broker, CLIENT_METRICS, "--list").splitlines())


def test_features(broker: Broker) -> None:
    """Each is at a level; ours, which are at that of the release, stay there."""
    assert re.search(r"Feature: group.version\s.*FinalizedVersionLevel: 1\s", run_tool(broker, FEATURES, "describe"))
    refusal = run_failing_tool(broker, FEATURES, "upgrade", "--feature", "group.version=9")
    assert "Could not upgrade group.version to 9" in refusal
    run_tool(broker, FEATURES, "upgrade", "--feature", "group.version=1")


def test_the_cluster(broker: Broker) -> None:
    def ask(*command: str) -> str:
        return run_java(f"{TOOLS}.ClusterTool", [*command, "--bootstrap-server", broker.bootstrap]).stdout

    assert re.match(r"Cluster ID: [\w-]{22}\s*$", ask("cluster-id"))
    endpoint = rf"1\s+127\.0\.0\.1\s+{broker.port}\s+null"
    assert re.search(endpoint, ask("list-endpoints"))
    assert re.search(rf"{endpoint}\s+unfenced", ask("list-endpoints", "--include-fenced-brokers"))
