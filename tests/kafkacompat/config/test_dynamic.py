"""Which properties a running broker takes, for whom, and how far at once."""

from __future__ import annotations

import pytest

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.dynamic import check_broker_configs, check_change_size, check_listeners, find_property
from kafkacompat.config.listeners import base_property_name

BROKER = BrokerConfig.load("node.id=1")


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("num.partitions", "num.partitions"),
        ("listener.name.internal.ssl.keystore.type", "ssl.keystore.type"),
        ("listener.name.internal.plain.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.internal.no.such", "no.such"),
        ("listener.names", "listener.names"),
    ],
)
def test_the_property_after_a_listeners(name: str, base: str) -> None:
    assert base_property_name(name) == base


def test_a_listeners_property_has_its_own_row() -> None:
    row = find_property("listener.name.internal.ssl.key.password")
    assert row is not None and row.sensitive
    assert find_property("listener.name.internal.no.such") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.retention.ms", "5"),
        ("some.plugin", "x"),
        ("listener.name.internal.max.connections", "5"),
    ],
)
def test_configs_that_may_be_set_for_all_brokers(name: str, value: str) -> None:
    check_broker_configs({name: value}, per_broker=False)
    check_broker_configs({name: value}, per_broker=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.client.auth", "required"),
        ("cordoned.log.dirs", "/a"),
        ("listener.name.internal.ssl.keystore.type", "PKCS12"),
        ("listener.name.internal.some.plugin", "x"),
    ],
)
def test_configs_that_may_be_set_for_one_broker_only(name: str, value: str) -> None:
    check_broker_configs({name: value}, per_broker=True)
    with pytest.raises(ConfigError, match=f"{name} can only be changed for one broker"):
        check_broker_configs({name: value}, per_broker=False)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("log.dirs", "/x", "cannot be changed while the broker runs"),
        ("ssl.keystore.type", "JKS", r"listener\.name\.<listener>\.ssl\.keystore\.type"),
        ("ssl.key.password", "hunter2", "can only be changed for one listener"),
        ("log.retention.ms", "x", "it takes a whole number of 64 bits"),
        (
            "listener.name.internal.max.connections",
            "x",
            r"^listener\.name\.internal\.max\.connections=x .*a whole number",
        ),
    ],
)
def test_static_properties_cannot_be_changed(name: str, value: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check_broker_configs({name: value}, per_broker=True)


def check_step(name: str, value: str) -> None:
    check_change_size(BROKER, BROKER.with_changes({name: value}, {}))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("num.io.threads", "4 8 16"),
        ("background.threads", "5 20"),
        ("log.cleaner.threads", "1 2"),
        ("log.local.retention.ms", "-2 0 604800000"),
        ("log.local.retention.bytes", "-1 100"),
        ("group.consumer.assignment.interval.ms", "0 15000"),
        ("max.connections.per.ip.overrides", "127.0.0.1:5 ::1:0,localhost:7"),
        ("log.cleaner.dedupe.buffer.size", "2000000"),
        ("listener.name.plaintext.max.connections", "1 2147483647"),
        ("listener.name.elsewhere.max.connections", "0"),
    ],
)
def test_steps_that_are_taken(name: str, values: str) -> None:
    for value in values.split():
        check_step(name, value)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("num.io.threads", "3", "from 8 it goes to 4 to 16 at once"),
        ("num.network.threads", "7", "from 3 it goes to 1 to 6 at once"),
        ("remote.log.reader.threads", "21", "from 10 it goes to 5 to 20"),
        ("log.cleaner.threads", "0", "from 1 it goes to 1 to 2"),
        ("log.local.retention.ms", "-1", "it takes -2 or 0 to 604800000"),
        ("log.local.retention.ms", "604800001", "it takes -2 or 0 to 604800000"),
        ("group.share.assignment.interval.ms", "15001", "group.share.max.assignment.interval.ms=15000"),
        ("max.connections", "0", "it takes a whole number of 1 or more"),
        ("max.connection.creation.rate", "0", "it takes a whole number of 1 or more"),
        ("listener.name.plaintext.max.connections", "0", "listener.name.plaintext.max.connections=0 is not valid"),
        ("listener.name.plaintext.max.connection.creation.rate", "0", "it takes a whole number of 1 or more"),
        ("max.connections.per.ip", "0", "without exceptions for addresses"),
        ("max.connections.per.ip.overrides", "127.0.0.1", "it takes a list of host:count"),
        ("max.connections.per.ip.overrides", "a:1,,b:2", "it takes a list of host:count"),
        ("log.cleaner.dedupe.buffer.size", "1048576", "a mebibyte a thread"),
    ],
)
def test_steps_that_are_refused(name: str, value: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check_step(name, value)


def test_a_listener_that_the_properties_file_shuts_stays_shut() -> None:
    before = BrokerConfig.load("node.id=1\nlistener.name.plaintext.max.connections=0")
    check_change_size(before, before.with_changes({"num.io.threads": "4"}, {}))


def test_a_bound_listener_keeps_its_protocol() -> None:
    before = BrokerConfig(
        {"node.id": "1", "listeners": "CLIENTS://:9092", "listener.security.protocol.map": "CLIENTS:SSL"}
    )
    after = before.with_changes({}, {"listener.security.protocol.map": "CLIENTS:PLAINTEXT"})
    with pytest.raises(ConfigError, match="CLIENTS is bound already with SSL: give it another name"):
        check_listeners(before, before, after)
