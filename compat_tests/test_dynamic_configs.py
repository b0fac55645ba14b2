"""Configurations changed while the broker runs take effect at once, and outlive it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from compat_tests.brokers import Broker, answers_api_versions
from compat_tests.conftest import MakeBroker
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.errors import ErrorCode

QUIET: dict[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}
Resource = tuple[int, str]
ALL_BROKERS: Resource = (4, "")
NODE: Resource = (4, "1")


def make_admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})


def change_config(broker: Broker, resource: Resource, name: str, value: str | None) -> int:
    """Set a config, or delete it (None), and return the error code; librdkafka cannot name all brokers."""
    with RawClient(broker.port) as client:
        return change_by(client, resource, name, value)


def change_by(client: RawClient, resource: Resource, name: str, value: str | None) -> int:
    return change_all_by(client, resource, {name: value})


def change_all_by(client: RawClient, resource: Resource, changes: Mapping[str, str | None]) -> int:
    kind, owner = resource
    configs = [
        AlterableConfig(name=name, config_operation=0 if value is not None else 1, value=value)
        for name, value in changes.items()
    ]
    wanted = AlterConfigsResource(resource_type=kind, resource_name=owner, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[wanted])
    return client.call(request, IncrementalAlterConfigsResponse, 1).responses[0].error_code


def describe_config(broker: Broker, resource: Resource, name: str) -> str | None:
    with RawClient(broker.port) as client:
        return describe_by(client, resource, name)


def describe_by(client: RawClient, resource: Resource, name: str) -> str | None:
    kind, owner = resource
    wanted = DescribeConfigsResource(resource_type=kind, resource_name=owner, configuration_keys=[name])
    answer = client.call(DescribeConfigsRequest(resources=[wanted]), DescribeConfigsResponse, 4)
    (only,) = answer.results[0].configs
    return only.value


def create_topic(broker: Broker, topic: str, **configs: str) -> None:
    given = {name.replace("_", "."): value for name, value in configs.items()}
    client = make_admin(broker)
    client.create_topics([NewTopic(topic, 1, 1, config=given)])[topic].result(20)


def can_produce(broker: Broker, topic: str, size_bytes: int) -> bool:
    """Whether a record of this size is taken; any refusal but that it is too large fails the test."""
    refusals: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 5_000_000, **QUIET})
    producer.produce(topic, bytes(size_bytes), on_delivery=lambda error, _: refusals.append(error))
    assert producer.flush(20) == 0
    (refusal,) = refusals
    assert refusal is None or refusal.code() == KafkaError.MSG_SIZE_TOO_LARGE, refusal
    return refusal is None


def test_the_largest_batch_of_all_topics(make_broker: MakeBroker) -> None:
    broker = make_broker()
    create_topic(broker, "plain")
    create_topic(broker, "own", max_message_bytes="3000000")
    assert can_produce(broker, "plain", 5000)
    assert change_config(broker, ALL_BROKERS, "message.max.bytes", "2000") == 0
    until(lambda: not can_produce(broker, "plain", 5000))
    assert can_produce(broker, "own", 2_000_000)
    assert change_config(broker, NODE, "message.max.bytes", "20000") == 0
    until(lambda: can_produce(broker, "plain", 5000))
    assert not can_produce(broker, "plain", 50_000)
    assert change_config(broker, (2, "own"), "max.message.bytes", None) == 0
    until(lambda: not can_produce(broker, "own", 50_000))
    broker.stop()
    broker.start()
    assert describe_config(broker, ALL_BROKERS, "message.max.bytes") == "2000"
    assert can_produce(broker, "plain", 5000) and not can_produce(broker, "plain", 50_000)
    assert change_config(broker, NODE, "message.max.bytes", None) == 0
    assert change_config(broker, ALL_BROKERS, "message.max.bytes", None) == 0
    until(lambda: can_produce(broker, "plain", 50_000))


def test_retention_of_topics_follows_the_brokers_default(make_broker: MakeBroker) -> None:
    broker = make_broker({"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "100"})
    create_topic(broker, "plain")
    create_topic(broker, "own", retention_bytes="100000000")
    for topic in ("plain", "own"):
        assert can_produce(broker, topic, 900_000) and can_produce(broker, topic, 900_000)
    assert change_config(broker, ALL_BROKERS, "log.segment.bytes", "1048576") == 0
    assert change_config(broker, ALL_BROKERS, "log.retention.bytes", "1000") == 0

    def start(topic: str) -> int:
        partition = TopicPartition(topic, 0)
        client = make_admin(broker)
        result: int = client.list_offsets({partition: OffsetSpec.earliest()})[partition].result(20).offset
        return result

    def plain_is_cut() -> bool:
        assert can_produce(broker, "plain", 900_000)
        return start("plain") > 0

    until(plain_is_cut)
    assert start("own") == 0


def test_connections_from_one_address(make_broker: MakeBroker) -> None:
    broker = make_broker()
    with RawClient(broker.port) as first, RawClient(broker.port):
        assert change_by(first, NODE, "max.connections.per.ip", "3") == 0
        until(lambda: describe_by(first, NODE, "max.connections.per.ip") == "3")
        with RawClient(broker.port) as third:
            assert describe_by(third, NODE, "max.connections.per.ip") == "3"
            with RawClient(broker.port) as fourth:
                assert fourth.is_closed()
            assert change_by(third, NODE, "max.connections.per.ip.overrides", "127.0.0.1:4") == 0
            until(lambda: describe_by(third, NODE, "max.connections.per.ip.overrides") == "127.0.0.1:4")
            with RawClient(broker.port) as fourth:
                assert describe_by(fourth, NODE, "max.connections.per.ip") == "3"


def test_a_listener_is_added_and_given_up(make_broker: MakeBroker) -> None:
    broker = make_broker()
    extra = free_port()
    before, protocols = describe_config(broker, NODE, "listeners"), "listener.security.protocol.map"
    map_before = describe_config(broker, NODE, protocols)
    with RawClient(broker.port) as client:
        changes = {
            protocols: f"{map_before},CONTROLLER:PLAINTEXT,EXTRA:PLAINTEXT",
            "listeners": f"{before},EXTRA://127.0.0.1:{extra}",
        }
        assert change_all_by(client, NODE, changes) == 0
    until(lambda: answers_api_versions(extra))
    with RawClient(extra) as client:
        assert describe_by(client, NODE, "listeners") == changes["listeners"]
        with RawClient(broker.port) as other:
            assert change_all_by(other, NODE, dict.fromkeys(changes)) == 0
        assert client.is_closed()
    until(lambda: not answers_api_versions(extra))
    assert describe_config(broker, NODE, "listeners") == before


def test_a_refused_change_changes_nothing(broker: Broker) -> None:
    for name, value in (("message.max.bytes", "many"), ("num.partitions", "5"), ("num.io.threads", "1000")):
        before = describe_config(broker, NODE, name)
        assert change_config(broker, ALL_BROKERS, name, value) == ErrorCode.INVALID_REQUEST
        assert describe_config(broker, NODE, name) == before
