"""Who is let in, and who is turned away."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kafkacompat.config import BrokerConfig
from kafkacompat.handlers.context import Peer
from kafkacompat.quotas.connection_rates import UNLIMITED, ConnectionLimit
from kafkacompat.server.connection_limits import ConnectionLimits, find_connection_rate

HOST = "192.0.2.1"


@dataclass
class Client:
    peer: Peer


def make_client(listener_name: str = "PLAINTEXT", host: str = HOST) -> Client:
    return Client(Peer(listener_name, host, 5555, "192.0.2.99", 9092))


def find_objection(changes: dict[str, str], *clients: Client, host: str = HOST) -> str | None:
    config = BrokerConfig.load("node.id=1").with_changes(changes, {})
    objection = ConnectionLimits(lambda: config).find_objection("PLAINTEXT", host, clients)
    assert objection is None or f"there are {objection.limit}=" in objection.text
    return objection and objection.text


def test_all_clients_are_accepted_by_default() -> None:
    assert find_objection({}, *[make_client()] * 1000) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"max.connections": "2"}, "there are max.connections=2 already"),
        ({"listener.name.plaintext.max.connections": "2"}, "of the listener PLAINTEXT already"),
        ({"max.connections.per.ip": "2"}, "max.connections.per.ip=2 from its address"),
        ({"max.connections.per.ip.overrides": "::1:9, 192.0.2.1:2"}, "max.connections.per.ip=2 from its address"),
        ({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "192.0.2.1:2"}, "per.ip=2"),
    ],
)
def test_one_more_than_allowed_is_turned_away(changes: dict[str, str], reason: str) -> None:
    assert find_objection(changes, make_client()) is None
    words = find_objection(changes, make_client(), make_client())
    assert words is not None and reason in words


def test_others_do_not_count() -> None:
    elsewhere = [make_client("INTERNAL", "192.0.2.2")] * 5
    assert find_objection({"listener.name.plaintext.max.connections": "1"}, *elsewhere) is None
    assert find_objection({"max.connections.per.ip": "1"}, *elsewhere) is None
    assert (
        find_objection(
            {"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "192.0.2.1:2"}, make_client()
        )
        is None
    )


def test_addresses_are_compared_whatever_way_they_are_written() -> None:
    changes = {"max.connections.per.ip.overrides": "[0:0:0:0:0:0:0:1]:1"}
    assert find_objection(changes, make_client(host="::1"), host="::1") is not None
    assert find_objection({"max.connections.per.ip.overrides": "localhost:0"}, host=HOST) is None


def test_the_configuration_in_effect_counts() -> None:
    config = BrokerConfig.load("node.id=1")
    limits = ConnectionLimits(lambda: config)
    assert limits.find_objection("PLAINTEXT", HOST, [make_client()]) is None
    config = config.with_changes({"max.connections": "1"}, {})
    assert limits.find_objection("PLAINTEXT", HOST, [make_client()]) is not None


@pytest.mark.parametrize(
    ("changes", "of_listener", "of_broker"),
    [
        ({}, UNLIMITED, UNLIMITED),
        ({"max.connection.creation.rate": "50"}, 50, 50),
        ({"listener.name.plaintext.max.connection.creation.rate": "20"}, 20, UNLIMITED),
        (
            {"max.connection.creation.rate": "50", "listener.name.plaintext.max.connection.creation.rate": "20"},
            20,
            50,
        ),
    ],
)
def test_rates_of_connections(changes: dict[str, str], of_listener: int, of_broker: int) -> None:
    config = BrokerConfig.load("node.id=1").with_changes(changes, {})
    assert find_connection_rate(config, "PLAINTEXT", None) == ConnectionLimit(of_listener, of_broker)


def test_the_rate_of_the_broker_does_not_count_for_the_listener_of_brokers() -> None:
    listeners = "listeners=PLAINTEXT://localhost:9092,BROKERS://localhost:9093"
    protocols = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT"
    both = BrokerConfig.load(f"node.id=1\nmax.connection.creation.rate=50\n{listeners}\n{protocols}")
    assert find_connection_rate(both, "BROKERS", "BROKERS") == ConnectionLimit(50, UNLIMITED)
    assert find_connection_rate(both, "PLAINTEXT", "BROKERS") == ConnectionLimit(50, 50)
    alone = BrokerConfig.load("node.id=1\nmax.connection.creation.rate=50\nlisteners=PLAINTEXT://localhost:9092")
    assert find_connection_rate(alone, "PLAINTEXT", "PLAINTEXT") == ConnectionLimit(50, 50)
