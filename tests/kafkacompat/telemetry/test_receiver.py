"""The rules of KIP-714, with Kafka's errors, on a clock that tests advance."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from twisted.internet.task import Clock

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import ConfigKey, ImageHolder
from kafkacompat.telemetry import receiver
from kafkacompat.telemetry.clients import TelemetryClient
from kafkacompat.telemetry.receiver import ClientTelemetry
from kafkacompat.wire.apis.push_telemetry import PushTelemetryRequest
from kafkacompat.wire.compression import Codec, compress
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID
from tests.kafkacompat.telemetry.pushes import make_push

CLIENT = {"client_id": "billing", "client_software_name": "apache-kafka-java", "client_software_version": "4.3.1"}
OTHER = {"client_id": "reporting", "client_software_name": "librdkafka", "client_software_version": "2.12"}
MAX_BYTES = 10_000
INTERVAL_S = 300


class World:
    def __init__(self, **subscriptions: Mapping[str, str]) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.metadata = ImageHolder()
        self.telemetry = ClientTelemetry(self.metadata, self.clock, Random(1).randbytes, limit=10, max_bytes=MAX_BYTES)
        self.set(**subscriptions)

    def set(self, **subscriptions: Mapping[str, str]) -> None:
        configs: dict[ConfigKey, Mapping[str, str]] = {
            (ResourceType.CLIENT_METRICS, name): own for name, own in subscriptions.items()
        }
        self.metadata.publish(replace(self.metadata.image, configs=configs))

    def subscribe(self, instance_id: bytes = ZERO_UUID, properties: Mapping[str, str] = CLIENT) -> TelemetryClient:
        return self.telemetry.subscribe(instance_id, properties)

    def push(self, client: TelemetryClient, metrics: bytes = b"", codec: int = 0, **fields: Any) -> None:
        values: dict[str, Any] = {"subscription_id": client.subscription.subscription_id, **fields}
        request = PushTelemetryRequest(
            client_instance_id=client.instance_id, compression_type=codec, metrics=metrics, **values
        )
        self.telemetry.push(request, CLIENT)

    def refuse(self, client: TelemetryClient, metrics: bytes = b"", codec: int = 0, **fields: Any) -> ErrorCode:
        with pytest.raises(KafkaError) as raised:
            self.push(client, metrics, codec, **fields)
        return raised.value.code


ALL = {"all": {"metrics": "*"}}


def test_without_a_subscription_nothing_is_wanted() -> None:
    client = World().subscribe()
    assert client.subscription.metrics == ()
    assert client.subscription.interval_ms == 300_000
    assert client.instance_id not in receiver.RESERVED_IDS


def test_subscriptions_that_match_are_joined() -> None:
    world = World(
        a={"metrics": "org.apache.kafka.producer,org.apache.kafka.consumer", "interval.ms": "5000"},
        b={
            "metrics": "org.apache.kafka.consumer.lag",
            "match": "client_id=bill.*,client_software_name=apache-kafka-java",
        },
        c={"metrics": "*", "interval.ms": "1000", "match": "client_id=bill"},
        d={"metrics": "never", "match": "client_id=(?=b).*"},
    )
    subscription = world.subscribe().subscription
    assert subscription.metrics == (
        "org.apache.kafka.consumer",
        "org.apache.kafka.consumer.lag",
        "org.apache.kafka.producer",
    )
    assert subscription.interval_ms == 5000
    assert world.subscribe(properties=OTHER).subscription.metrics == subscription.metrics[::2]
    world.set(all={"metrics": "*,org.apache.kafka.producer"})
    assert world.subscribe().subscription.metrics == ("*",)


def test_the_id_of_a_subscription_changes_with_it() -> None:
    world = World(**ALL)
    client = world.subscribe()
    first = client.subscription.subscription_id
    assert world.subscribe(properties=CLIENT).subscription.subscription_id != first  # of another client
    world.push(client, make_push("a"))
    world.set(all={"metrics": "*", "interval.ms": "1000"})
    assert world.refuse(client, make_push("a")) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = world.subscribe(client.instance_id)  # at once, as its last error was that one
    assert again.subscription.subscription_id != first
    world.clock.advance(1)
    world.push(again, make_push("a"))
    assert world.telemetry.unknown_subscriptions == 1


def test_an_image_of_other_topics_changes_no_subscription() -> None:
    world = World(**ALL)
    client = world.subscribe()
    world.metadata.publish(world.metadata.image)
    world.push(client, make_push("a"))
    assert world.telemetry.find_client(client.instance_id) is client


def test_requests_that_come_too_early_are_throttled() -> None:
    world = World(**ALL)
    client = world.subscribe()
    with pytest.raises(KafkaError) as raised:
        world.subscribe(client.instance_id)
    assert raised.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    world.push(client)  # the first push may come at any time
    world.clock.advance(INTERVAL_S - 1)
    assert world.refuse(client) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    world.clock.advance(1)
    world.push(client)
    assert world.telemetry.throttled == 2


def test_the_last_push_may_come_early_and_is_the_last() -> None:
    world = World(**ALL)
    client = world.subscribe()
    world.push(client)
    world.push(client, terminating=True)
    assert world.refuse(client) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("instance_id", sorted(receiver.RESERVED_IDS))
def test_a_push_needs_an_id(instance_id: bytes) -> None:
    world = World(**ALL)
    client = replace(world.subscribe(), instance_id=instance_id)
    assert world.refuse(client) is ErrorCode.INVALID_REQUEST


def test_a_client_of_another_broker_need_not_ask_first() -> None:
    """Subscription ids are the same on all brokers."""
    first, second = World(**ALL), World(**ALL)
    client = first.subscribe()
    second.push(client, make_push("a"))
    assert second.telemetry.exported == 1


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_is_read(codec: Codec) -> None:
    world = World(**ALL)
    client = world.subscribe()
    world.push(client, compress(codec, make_push("org.apache.kafka.producer.speed", value=7)), codec)
    assert list(world.telemetry.points) == [("producer_speed", False)]
    assert [value for _, _, value in world.telemetry.points.list_values("producer_speed")] == [7]


@pytest.mark.parametrize("codec", [5, -1, 127])
def test_an_unknown_codec_is_refused_and_the_client_may_ask_again(codec: int) -> None:
    world = World(**ALL)
    client = world.subscribe()
    assert world.refuse(client, b"x", codec) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert world.subscribe(client.instance_id) is client


def test_a_push_is_bounded_packed_and_unpacked() -> None:
    world = World(**ALL)
    assert world.refuse(world.subscribe(), bytes(MAX_BYTES + 1)) is ErrorCode.TELEMETRY_TOO_LARGE
    for codec in list(Codec)[1:]:
        bomb = compress(codec, bytes(100 * MAX_BYTES))
        assert len(bomb) < 6 * MAX_BYTES
        code = world.refuse(world.subscribe(), bomb[:MAX_BYTES], codec)
        assert code in (ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.INVALID_RECORD)
    assert world.telemetry.exported == 0


@pytest.mark.parametrize("codec", list(Codec))
def test_garbage_is_refused(codec: Codec, caplog: pytest.LogCaptureFixture) -> None:
    world = World(**ALL)
    caplog.set_level("INFO")
    assert world.refuse(world.subscribe(), b"\x10\xff\xff no protobuf", codec) is ErrorCode.INVALID_RECORD
    assert len(caplog.records) == 1 and "Traceback" not in caplog.text
    assert world.telemetry.failed == 1


def test_silent_clients_are_forgotten_with_their_values() -> None:
    world = World(**ALL)
    client = world.subscribe()
    world.push(client, make_push("a"))
    world.clock.advance(3 * INTERVAL_S)
    assert world.telemetry.list_clients() == [client]
    world.clock.advance(1)
    assert world.telemetry.list_clients() == []
    assert list(world.telemetry.points) == []


def test_the_clients_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "MAX_CLIENTS", 3)
    world = World(**ALL)
    clients = [world.subscribe() for _ in range(5)]
    assert world.telemetry.list_clients() == clients[2:]


def test_one_unreadable_push_of_a_client_is_logged_in_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    world = World(all={"metrics": "*", "interval.ms": "1000"})
    first, second = world.subscribe(b"1" * 16), world.subscribe(b"2" * 16)

    def push_rubbish() -> None:
        for client in (first, second):
            assert world.refuse(client, b"\xff" * 20) == ErrorCode.INVALID_RECORD

    with caplog.at_level(logging.INFO):
        for _ in range(50):
            push_rubbish()
            world.clock.advance(1)
        assert len(caplog.messages) == 2
        assert "'billing'" in caplog.messages[0]
        world.clock.advance(60)
        push_rubbish()
    assert len(caplog.messages) == 2 + 2 + 2
    assert "49 more lines like these" in caplog.messages[2]
    assert world.telemetry.failed == 102
