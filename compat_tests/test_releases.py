"""Our table of the versions of each release, against the releases; and listeners that emulate them, against clients."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaProducer

from compat_tests import releases
from compat_tests.brokers import KafkacompatBroker
from compat_tests.confluent import assign_from_beginning
from compat_tests.ports import free_port
from compat_tests.releases import PATCHES
from compat_tests.waiting import until
from kafkacompat.wire.releases import CHANGES, RELEASES, find_release

# One release for each way to report versions; `python -m compat_tests.releases` asks all releases.
ASKED = ("0.9.0", "0.10.2", "0.11.0", "2.7", "2.8", "3.9", "4.3")


def test_every_release_can_be_asked() -> None:
    assert tuple(PATCHES) == RELEASES


@pytest.mark.parametrize("name", ASKED)
def test_the_table_of_versions_equals_the_releases(name: str) -> None:
    ours = {key: (versions.first, versions.last) for key, versions in find_release(name).versions.items()}
    assert ours == releases.list_served(name)
    before = {} if name == RELEASES[0] else find_release(RELEASES[RELEASES.index(name) - 1]).versions
    known = {key: (versions.first, versions.last) for key, versions in before.items()}
    assert releases.describe_changes(known, ours) == CHANGES[name]


LISTENERS = ("0.8.2", "0.9.0", "0.10.0", "0.11.0", "1.0", "2.3", "2.8", "3.9", "4.3")


class EmulatingBroker(KafkacompatBroker):
    """Ours, with a listener more for each of LISTENERS."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.ports = {name: free_port() for name in LISTENERS}
        names = {name: f"V{name.replace('.', '_')}" for name in LISTENERS}
        addresses = [f"{names[name]}://127.0.0.1:{port}" for name, port in self.ports.items()]
        self.properties = {
            "listeners": ",".join([f"PLAINTEXT://127.0.0.1:{self.port}", *addresses]),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in ("PLAINTEXT", *names.values())),
            **{f"kafkacompat.listener.name.{names[name].lower()}.emulate": name for name in LISTENERS},
        }


@pytest.fixture(scope="module")
def emulating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatingBroker]:
    with EmulatingBroker(tmp_path_factory.mktemp("emulating") / "node") as running:
        yield running


def round_trip(port: int, topic: str, *, subscribe: bool = True, **options: Any) -> list[bytes]:
    """Produce ten records, read them as a member of a group or alone, commit, and fetch the committed offset."""
    servers = {"bootstrap.servers": f"127.0.0.1:{port}", **options}
    producer = Producer({**servers, "enable.idempotence": False})
    for number in range(10):
        producer.produce(topic, key=b"k", value=b"%d" % number)
    assert producer.flush(30) == 0
    group = {"group.id": f"{topic}-group", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**servers, **group, "fetch.wait.max.ms": 100})
    if subscribe:
        consumer.subscribe([topic])
    else:
        assign_from_beginning(consumer, topic)
    values: list[bytes] = []

    def all_read() -> bool:
        for message in consumer.consume(10, 0.2):
            assert message.error() is None, message.error()
            values.append(message.value())
        return len(values) >= 10

    until(all_read, every_seconds=0)
    consumer.commit(asynchronous=False)
    assert [partition.offset for partition in consumer.committed([TopicPartition(topic, 0)], 10)] == [10]
    consumer.close()
    return values


TEN = [b"%d" % number for number in range(10)]
QUIET: dict[str, Any] = {"log_level": 0}


@pytest.mark.parametrize("name", ["0.9.0", "everything"])
def test_librdkafka_works_with_a_fallback_to_0_9(emulating: EmulatingBroker, name: str) -> None:
    """It never asks for ApiVersions, of a listener that has none and of one that serves everything."""
    settings: dict[str, Any] = {"api.version.request": False, "broker.version.fallback": "0.9.0"}
    port = emulating.ports.get(name, emulating.port)
    assert round_trip(port, f"fallback-{name}", **settings, **QUIET) == TEN


def test_librdkafka_works_with_a_fallback_to_0_8_2_without_groups(emulating: EmulatingBroker) -> None:
    settings: dict[str, Any] = {"api.version.request": False, "broker.version.fallback": "0.8.2"}
    assert round_trip(emulating.ports["0.8.2"], "assigned", subscribe=False, **settings, **QUIET) == TEN


@pytest.mark.parametrize(("name", "timeout_ms", "waited_ms"), [("0.9.0", 2000, 2000), ("0.8.2", 120_000, 0)])
def test_librdkafka_falls_back_without_api_versions(
    emulating: EmulatingBroker, name: str, timeout_ms: int, waited_ms: int
) -> None:
    """0.8 hangs up, and librdkafka does without, however long it would wait; 0.9 does not answer, so it waits."""
    falls_back = {
        "broker.version.fallback": name,
        "api.version.request.timeout.ms": timeout_ms,
        "api.version.fallback.ms": 60_000,
        # Else it forgets the negotiated versions with each disconnection (librdkafka 2.16).
        "metadata.recovery.strategy": "none",
    }
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{emulating.ports[name]}", **falls_back, **QUIET})
    begun = time.monotonic()
    producer.produce(f"found-out-{name}", value=b"v")
    assert producer.flush(60) == 0
    assert (time.monotonic() - begun) * 1000 >= waited_ms


@pytest.mark.parametrize("name", [name for name in LISTENERS if find_release(name).is_since("0.10.0")])
def test_librdkafka_negotiates_with_each_release(emulating: EmulatingBroker, name: str) -> None:
    assert round_trip(emulating.ports[name], f"asked-{name}", **QUIET) == TEN


@pytest.mark.parametrize(
    ("name", "release"),
    [("0.10.0", (0, 10, 0)), ("0.11.0", (0, 11)), ("1.0", (1, 0)), ("2.3", (2, 3)), ("2.8", (2, 8))],
)
def test_kafka_python_names_the_release(emulating: EmulatingBroker, name: str, release: tuple[int, ...]) -> None:
    producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{emulating.ports[name]}")
    assert producer.send(f"named-{name}", b"v").get(30).offset == 0
    assert producer.config["api_version"] == release
    producer.close()
