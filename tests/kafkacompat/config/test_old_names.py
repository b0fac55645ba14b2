"""A properties file of Kafka 0.8.1: what stands for its names, and what is said of those that are gone."""

from __future__ import annotations

import pytest

from kafkacompat.config import PROPERTIES, BrokerConfig, ConfigError
from kafkacompat.config.old_names import GONE_NAMES, translate_addresses
from kafkacompat.config.suggestions import did_you_mean

SERVER_PROPERTIES = """
broker.id=3
port=9093
host.name=kafka-3
num.network.threads=4
num.io.threads=8
socket.send.buffer.bytes=1048576
socket.receive.buffer.bytes=1048576
socket.request.max.bytes=104857600
log.dirs=/grid/a/kafka-logs,/grid/b/kafka-logs
num.partitions=8
log.flush.interval.messages=10000
log.flush.interval.ms=1000
log.flush.intervals.ms.per.topic=topic1:1000, topic2:3000
log.retention.hours=168
log.segment.bytes=536870912
log.cleanup.interval.mins=1
log.cleaner.enable=false
zookeeper.connect=zoo1:2181,zoo2:2181/kafka
zookeeper.connection.timeout.ms=1000000
kafka.metrics.polling.interval.secs=5
kafka.metrics.reporters=kafka.metrics.KafkaCSVMetricsReporter
kafka.csv.metrics.dir=/tmp/kafka_metrics
kafka.csv.metrics.reporter.enabled=false
replica.lag.max.messages=10000000
"""


def test_a_file_of_0_8_1_is_a_configuration() -> None:
    config = BrokerConfig.load(SERVER_PROPERTIES)
    (listener,) = config.listeners
    assert (config.node_id, listener.entry) == (3, "PLAINTEXT://kafka-3:9093")
    assert config.advertised_listeners == {}
    assert config.string("zookeeper.connect") == "zoo1:2181,zoo2:2181/kafka"
    assert config.int("socket.send.buffer.bytes") == 1_048_576
    assert (config.int("log.flush.interval.messages"), config.int("log.flush.interval.ms")) == (10_000, 1000)
    assert config.unknown_names == (
        "kafka.csv.metrics.dir",
        "kafka.csv.metrics.reporter.enabled",
        "log.cleanup.interval.mins",
        "log.flush.intervals.ms.per.topic",
        "replica.lag.max.messages",
    )
    assert GONE_NAMES.keys() > set(config.unknown_names)


@pytest.mark.parametrize(
    ("given", "listeners", "advertised"),
    [
        ({}, None, None),
        ({"port": "1"}, "PLAINTEXT://:1", None),
        ({"host.name": "h"}, "PLAINTEXT://h:9092", None),
        ({"host.name": "::1", "port": " 1 "}, "PLAINTEXT://[::1]:1", None),
        ({"port": "1", "advertised.host.name": "a"}, "PLAINTEXT://:1", "PLAINTEXT://a:1"),
        ({"host.name": "h", "advertised.port": "2"}, "PLAINTEXT://h:9092", "PLAINTEXT://h:2"),
        ({"advertised.host.name": "a", "advertised.port": "2"}, None, "PLAINTEXT://a:2"),
        ({"port": "1", "listeners": "A://:3"}, "A://:3", None),
        ({"advertised.port": "1", "advertised.listeners": "A://a:3"}, None, "A://a:3"),
        ({"listeners": "PLAINTEXT://:3", "advertised.host.name": "a"}, "PLAINTEXT://:3", "PLAINTEXT://a:9092"),
    ],
)
def test_addresses(given: dict[str, str], listeners: str | None, advertised: str | None) -> None:
    translated = translate_addresses(given)
    assert (translated.get("listeners"), translated.get("advertised.listeners")) == (listeners, advertised)


@pytest.mark.parametrize(("name", "port"), [("port", "many"), ("advertised.port", "65536"), ("port", "-1")])
def test_a_port_that_is_none_is_refused_by_its_own_name(name: str, port: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}={port} is not valid: it takes a whole number from 0 to 65535$"):
        BrokerConfig.load(f"{name}={port}\n")


def test_ineffective_old_names_are_unknown_and_name_their_replacement() -> None:
    config = BrokerConfig.load("broker.id=1\nport=1\n", {"listeners": "PLAINTEXT://:2"})
    assert (config.listeners[0].port, config.unknown_names) == (2, ("port",))
    assert did_you_mean("port", PROPERTIES) == " (listeners replaces it)"


@pytest.mark.parametrize("name", GONE_NAMES)
def test_every_removed_name_names_its_known_replacement(name: str) -> None:
    assert name not in PROPERTIES
    sentence = did_you_mean(name, PROPERTIES)
    assert sentence == f" ({GONE_NAMES[name]})"
    words = sentence.strip(" ()").split()
    if words[-2:] == ["replaces", "it"] and words[0] != "the" and words[0] != "nothing":
        assert words[0] in PROPERTIES


def test_the_replacement_of_the_lag_in_records_is_named() -> None:
    assert did_you_mean("replica.lag.max.messages", PROPERTIES).startswith(" (replica.lag.time.max.ms replaces it")
