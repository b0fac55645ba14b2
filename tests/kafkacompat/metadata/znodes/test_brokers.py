"""A broker's registration in each version."""

from __future__ import annotations

import json

import pytest

from kafkacompat.metadata.image import BrokerImage, Losses
from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes.brokers import ProcessHome, VersionRange, decode_broker, decode_home, encode_broker

BROKER = BrokerImage(
    7,
    "dc1",
    {"CLIENT": ("kafka.example", 9093), "REPLICATION": ("fd00::7", 9092)},
    4711,
    {"CLIENT": "SASL_SSL", "REPLICATION": "PLAINTEXT"},
)
STORED = {
    "version": 5,
    "host": "fd00::7",
    "port": 9092,
    "jmx_port": -1,
    "timestamp": "1700000000123",
    "endpoints": ["CLIENT://kafka.example:9093", "REPLICATION://[fd00::7]:9092"],
    "listener_security_protocol_map": {"CLIENT": "SASL_SSL", "REPLICATION": "PLAINTEXT"},
    "features": {},
    "rack": "dc1",
}


def test_version_5_as_kafka_writes_it() -> None:
    assert json.loads(encode_broker(BROKER, 1_700_000_000_123)) == STORED
    assert decode_broker(7, encode_broker(BROKER, 0), 4711) == BROKER


def test_a_broker_without_rack_and_without_a_plaintext_listener() -> None:
    broker = BrokerImage(1, None, {"SSL": ("h", 1)}, 5, {"SSL": "SSL", "CONTROL": "PLAINTEXT"})
    written = json.loads(encode_broker(broker, 0))
    assert (written["host"], written["port"]) == (None, -1) and "rack" not in written
    assert written["listener_security_protocol_map"] == {"SSL": "SSL"}


def test_features_are_ranges() -> None:
    written = json.loads(encode_broker(BROKER, 0, {"metadata.version": VersionRange(1, 21)}))
    assert written["features"] == {"metadata.version": {"min_version": 1, "max_version": 21}}


def test_a_home_is_a_field_of_our_own() -> None:
    home = ProcessHome(frozenset(("b", "a")), "boot")
    broker = BROKER._replace(losses=Losses(records=True))
    value = encode_broker(broker, 1_700_000_000_123, home=home)
    own = {"directory_ids": ["a", "b"], "boot_id": "boot", "lacks_replicas": 0, "lacks_records": 1}
    assert json.loads(value) == {**STORED, "kafkacompat": own}
    assert decode_broker(7, value, 4711) == broker
    assert decode_home(7, value) == home
    assert decode_home(7, json.dumps(STORED).encode()) is None


@pytest.mark.parametrize("damaged", [3, {"boot_id": "x"}, {"directory_ids": "x"}, {"directory_ids": [], "boot_id": 1}])
def test_a_damaged_home_is_named(damaged: object) -> None:
    with pytest.raises(StoreError, match="/brokers/ids/7"):
        decode_home(7, json.dumps({**STORED, "kafkacompat": damaged}).encode())


@pytest.mark.parametrize(
    ("value", "rack"),
    [
        ({"version": 1, "host": "h", "port": 9092, "jmx_port": 9999, "timestamp": "1"}, None),
        ({"version": 2, "host": "h", "port": 9092, "jmx_port": -1, "endpoints": ["PLAINTEXT://h:9092"]}, None),
        ({"version": 3, "host": "h", "port": 9092, "endpoints": ["PLAINTEXT://h:9092"], "rack": "r"}, "r"),
        (
            {
                "version": 4,
                "endpoints": ["plaintext://h:9092"],
                "listener_security_protocol_map": {"plaintext": "PLAINTEXT"},
                "rack": None,
            },
            None,
        ),
        ({"version": 6, "endpoints": ["PLAINTEXT://h:9092"], "new": [1]}, None),
    ],
)
def test_other_versions_are_read(value: dict[str, object], rack: str | None) -> None:
    broker = BrokerImage(3, rack, {"PLAINTEXT": ("h", 9092)}, 9, {"PLAINTEXT": "PLAINTEXT"})
    assert decode_broker(3, json.dumps(value).encode(), 9) == broker


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": 0}, '"version" is 0, not a whole number from 1'),
        ({"version": None}, 'it has no "version"'),
        ({"version": 1, "host": None}, 'it has no "host"'),
        ({"version": 1, "port": 65536}, '"port" is 65536'),
        ({"endpoints": "CLIENT://h:1"}, "\"endpoints\" is 'CLIENT://h:1', not a list of texts"),
        ({"endpoints": ["CLIENT://:9092"]}, "\"endpoints\" has 'CLIENT://:9092', not LISTENER://HOST:PORT"),
        ({"endpoints": ["CLIENT://h:99999"]}, "\"endpoints\" has 'CLIENT://h:99999'"),
        ({"endpoints": ["CLIENT://h\n:1"]}, "\"endpoints\" has 'CLIENT://h\\n:1'"),
        ({"endpoints": ["OTHER://h:1"]}, 'the listener "OTHER" has none of the security protocols PLAINTEXT, SSL'),
        ({"listener_security_protocol_map": {"CLIENT": "TLS"}}, 'the listener "CLIENT" has none'),
        ({"listener_security_protocol_map": {"CLIENT": 1}}, "\"listener_security_protocol_map\" is {'CLIENT': 1}"),
        ({"rack": 5}, '"rack" is 5, not a text'),
    ],
)
def test_a_damaged_registration(change: dict[str, object], problem: str) -> None:
    with pytest.raises(StoreError) as error:
        decode_broker(7, json.dumps({**STORED, **change}).encode(), 1)
    assert str(error.value).startswith(f"the metadata is damaged at /brokers/ids/7: {problem}")
    assert "\n" not in str(error.value)
