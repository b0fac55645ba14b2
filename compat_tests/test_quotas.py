"""Clients with quotas, over the wire: real clients keep to what kafka-configs.sh sets, and one throttled client delays no other.

Bytes are counted by the broker's clock, and throttle times are those that the broker reports: a busy machine makes a client slower,
which none of these tests takes for throttling.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers import BROKERS, Broker
from compat_tests.confluent import assign_from_beginning, consumer_of, create_topic, read, read_all
from compat_tests.java_tools import run_java
from compat_tests.raw_client import ClosedError, RawClient, produce_request
from compat_tests.waiting import until
from kafkacompat.wire.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.record_batch import build_batch

WINDOWS = 10
"""Windows of a second over which a client's rate is compared with its quota."""
LONG_MS = 500
PROPERTIES = {"quota.window.num": "2", "controller.quota.window.num": "2"}
"""With two windows a rate follows its quota soonest: the bytes of a burst count for a second or two."""


@pytest.fixture(scope="module")
def limited(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with short windows, whose clients have quotas by client id."""
    with BROKERS[broker_kind](tmp_path_factory.mktemp("limited") / "node", PROPERTIES) as running:
        yield running


def set_quota(broker: Broker, kind: str, name: str | None, key: str, value: float | None) -> None:
    """Set or remove a quota by a request; it is in effect then."""
    entity = EntityData(entity_type=kind, entity_name=name)
    entry = EntryData(entity=[entity], ops=[OpData(key=key, value=value or 0.0, remove=value is None)])
    with RawClient(broker.port) as client:
        answer = client.call(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse, 1)
        assert answer.entries[0].error_code == 0, answer
        until(lambda: _find_quota(client, kind, name, key) == value)


def _find_quota(client: RawClient, kind: str, name: str | None, key: str) -> float | None:
    component = ComponentData(entity_type=kind, match_type=1 if name is None else 0, match=name)
    request = DescribeClientQuotasRequest(components=[component], strict=True)
    described = client.call(request, DescribeClientQuotasResponse, 1)
    return next((value.value for entry in described.entries or [] for value in entry.values if value.key == key), None)


def set_quota_by_tool(broker: Broker, client_id: str, key: str, value: int) -> None:
    """Set a quota as an administrator does."""
    entity = ["--entity-type", "clients", "--entity-name", client_id]
    run_java(
        "kafka.admin.ConfigCommand",
        ["--bootstrap-server", broker.bootstrap, *entity, "--alter", "--add-config", f"{key}={value}"],
    )
    with RawClient(broker.port) as client:
        until(lambda: _find_quota(client, "client-id", client_id, key) == value)


def make_produce(topic: str, size_bytes: int) -> Any:
    return produce_request(topic, {0: build_batch([(1_700_000_000_000, b"k", b"v" * size_bytes, [])])})


# Real clients


@pytest.mark.tools
def test_a_producer_stays_within_its_quota_of_kafka_configs(limited: Broker, name: str) -> None:
    quota, record_bytes = 200_000, 2000
    create_topic(limited, name, message_timestamp_type="LogAppendTime")
    set_quota_by_tool(limited, name, "producer_byte_rate", quota)
    throttled_s: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": limited.bootstrap,
            "client.id": name,
            "acks": "1",
            "batch.num.messages": 1,
            "max.in.flight": 1,
            "throttle_cb": lambda event: throttled_s.append(event.throttle_time),
        }
    )
    count = quota * WINDOWS // record_bytes
    for _ in range(count):
        producer.produce(name, b"v" * record_bytes)
    until(lambda: producer.poll(0.05) >= 0 and len(producer) == 0, timeout_seconds=60)
    producer.flush(1)
    appended_ms = [message.timestamp()[1] for message in read_all(limited, name, count)]
    elapsed_s = (appended_ms[-1] - appended_ms[0]) / 1000
    # The broker mutes the client for the bytes of its last requests, at most one window here, after the last append.
    assert count * record_bytes <= 1.05 * quota * (elapsed_s + 1.1)
    assert elapsed_s >= WINDOWS * 0.8
    assert throttled_s and max(throttled_s) < 3


def read_within_quota(broker: Broker, topic: str, count: int) -> tuple[list[Any], list[float]]:
    """The messages of a topic, and the throttle times in seconds, of a consumer whose client id is the topic's name."""
    throttled_s: list[float] = []
    consumer = consumer_of(
        broker,
        f"reader-of-{topic}",
        **{"client.id": topic, "throttle_cb": lambda event: throttled_s.append(event.throttle_time)},
    )
    assign_from_beginning(consumer, topic, [0])
    messages = read(consumer, count)
    consumer.close()
    return messages, throttled_s


def test_a_consumer_reads_all_within_its_quota(limited: Broker, name: str) -> None:
    """A librdkafka consumer that is throttled loses and repeats nothing."""
    quota, record_bytes, count = 100_000, 5000, 60
    create_topic(limited, name)
    producer = Producer({"bootstrap.servers": limited.bootstrap, "batch.num.messages": 1})
    for number in range(count):
        producer.produce(name, str(number).encode() + b"v" * record_bytes)
    producer.flush(30)
    set_quota(limited, "client-id", name, "consumer_byte_rate", quota)
    messages, throttled_s = read_within_quota(limited, name, count)
    assert [int(message.value().partition(b"v")[0]) for message in messages] == list(range(count))
    # 300 KB at 100 KB a second, less what the first windows allow.
    assert sum(throttled_s) > 1


@pytest.mark.tools
def test_kafka_topics_reports_that_the_quota_is_exceeded(limited: Broker, name: str, tmp_path: Path) -> None:
    set_quota(limited, "client-id", name, "controller_mutation_rate", 0.01)
    properties = tmp_path / "client.properties"
    properties.write_text(f"client.id={name}\n")

    def create(topic: str) -> str:
        arguments = ["--bootstrap-server", limited.bootstrap, "--command-config", str(properties)]
        more = ["--create", "--topic", topic, "--partitions", "3"]
        done = run_java("org.apache.kafka.tools.TopicCommand", [*arguments, *more], check=False)
        return done.stdout + done.stderr

    assert f"Created topic {name}-a" in create(f"{name}-a")
    assert "ThrottlingQuotaExceededException" in create(f"{name}-b")


def test_an_older_administrator_is_throttled_and_not_rejected(limited: Broker, name: str) -> None:
    """librdkafka sends CreateTopics 4, which does not know the error: each connection is muted after its request."""
    set_quota(limited, "client-id", name, "controller_mutation_rate", 0.01)
    for topic in (f"{name}-a", f"{name}-b"):
        admin = AdminClient({"bootstrap.servers": limited.bootstrap, "client.id": name, "log_level": 0})
        admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(30)


# By hand


@pytest.mark.tools
def test_a_raw_producer_stays_within_five_percent_of_its_quota(limited: Broker, name: str) -> None:
    """Throttle times are those that bring the rate to the quota: neither more bytes a second nor fewer."""
    quota, size_bytes = 100_000, 2000
    create_topic(limited, name)
    set_quota(limited, "client-id", name, "producer_byte_rate", quota)
    request = make_produce(name, size_bytes)
    with RawClient(limited.port, client_id=name) as client:
        used, throttled_ms, last_ms, begun = 0, 0, 0, time.monotonic()
        # Ends with a long throttle time: just before it the client is ahead of its quota.
        while used < quota * WINDOWS or (last_ms < LONG_MS and used < quota * (WINDOWS + 2)):
            used += len(client.encode(request, 9))
            client.send(request, 9)
            last_ms = client.receive(ProduceResponse, 9).throttle_time_ms
            throttled_ms += last_ms
        elapsed_ms = (time.monotonic() - begun) * 1000 + last_ms
    # Whatever time the machine takes besides makes the throttle times shorter, never longer.
    assert used >= 0.95 * quota * throttled_ms / 1000
    assert used <= 1.05 * quota * elapsed_ms / 1000
    assert throttled_ms > 0


def test_a_throttled_client_delays_no_other(limited: Broker, name: str) -> None:
    create_topic(limited, name)
    set_quota(limited, "client-id", name, "producer_byte_rate", 10)
    with RawClient(limited.port, client_id=name) as throttled, RawClient(limited.port) as other:
        answer = throttled.call(make_produce(name, 2000), ProduceResponse, 9)
        assert answer.throttle_time_ms > 60_000
        assert answer.responses[0].partition_responses[0].error_code == 0
        throttled.send(ApiVersionsRequest(), 0)
        for _ in range(20):
            assert other.call(make_produce(name, 2000), ProduceResponse, 9).throttle_time_ms == 0
        assert select.select([throttled.socket], [], [], 0)[0] == []
        # Another connection of the same client is throttled by its own requests.
        with RawClient(limited.port, client_id=name) as again:
            assert again.call(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == 0


def test_a_quota_that_is_raised_counts_at_once(limited: Broker, name: str) -> None:
    create_topic(limited, name)
    set_quota(limited, "client-id", name, "producer_byte_rate", 10)

    def produce() -> int:
        with RawClient(limited.port, client_id=name) as client:
            return client.call(make_produce(name, 2000), ProduceResponse, 9).throttle_time_ms

    assert produce() > 60_000
    set_quota(limited, "client-id", name, "producer_byte_rate", 1_000_000)
    assert produce() == 0
    set_quota(limited, "client-id", name, "producer_byte_rate", None)
    assert produce() == 0


def test_an_address_makes_no_more_connections_than_its_quota(limited: Broker) -> None:
    address = "127.0.0.9"
    set_quota(limited, "ip", address, "connection_creation_rate", 3)

    def connects() -> bool:
        with RawClient(limited.port, address=address) as client:
            try:
                return client.call(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == 0
            except (ClosedError, OSError):
                return False

    assert connects()
    with ExitStack() as opened:
        held = [opened.enter_context(RawClient(limited.port, address=address)) for _ in range(30)]
        # Those are closed after a while without an answer; the first ones may be served.
        assert held[-1].is_closed()
        with RawClient(limited.port) as other:
            assert other.call(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == 0
    until(connects)
    set_quota(limited, "ip", address, "connection_creation_rate", None)


def test_invented_client_ids_are_throttled_and_harmless(limited: Broker, name: str) -> None:
    create_topic(limited, name)
    set_quota(limited, "client-id", None, "producer_byte_rate", 10)
    try:
        for number in range(300):
            long_id = f"{name}-{number}-" + "x" * (number * 100)
            with RawClient(limited.port, client_id=long_id) as client:
                assert client.call(make_produce(name, 200), ProduceResponse, 9).throttle_time_ms > 0
    finally:
        set_quota(limited, "client-id", None, "producer_byte_rate", None)
