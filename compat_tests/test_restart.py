"""The data after a stop, and after SIGKILL under load."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from compat_tests.brokers import Broker
from compat_tests.confluent import assign_from_beginning
from compat_tests.conftest import MakeBroker
from compat_tests.raw_client import RawClient
from compat_tests.same_answers.quotas import make_alteration, quotas_of
from compat_tests.same_answers.security import SHA_512, list_credentials, make_upsertion
from compat_tests.waiting import pause, until
from kafkacompat.wire.apis.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from kafkacompat.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

QUIET: dict[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


def create_topic(broker: Broker, topic: str, partitions: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(30)


def read_partition(broker: Broker, topic: str, count: int, partition: int = 0) -> list[tuple[int, bytes]]:
    """Read (offset, value) from the beginning until *count* records have come and no more are there."""
    settings = {"group.id": "reader", "enable.partition.eof": True, "fetch.wait.max.ms": 20}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings})
    assign_from_beginning(consumer, topic, [partition])
    records: list[tuple[int, bytes]] = []

    def at_the_end() -> bool:
        message: Any = consumer.poll(0.2)
        if message is None:
            return False
        if message.error():
            return len(records) >= count
        records.append((message.offset(), message.value()))
        return False

    until(at_the_end, every_seconds=0)
    consumer.close()
    return records


def test_stop_is_clean(make_broker: MakeBroker, broker_kind: str) -> None:
    broker = make_broker()
    create_topic(broker, "kept")
    assert broker.stop() == {"kafkacompat": 0, "kafka": 143}[broker_kind]
    assert (broker.data_folder / ".kafka_cleanshutdown").exists()
    broker.start()
    assert not (broker.data_folder / ".kafka_cleanshutdown").exists()


def cluster_state(broker: Broker, topic: str) -> tuple[str, int, str, Any]:
    """Return the data that must survive a restart: cluster id, partition count, a topic config, the topic's id."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    metadata = admin.list_topics(timeout=20)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    config = admin.describe_configs([resource])[resource].result(20)["retention.ms"].value
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(20)
    return metadata.cluster_id, len(metadata.topics[topic].partitions), config, str(described.topic_id)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_topics_and_records_outlive_the_process(make_broker: MakeBroker, name: str, end: str) -> None:
    broker = make_broker()
    create_topic(broker, name, 3, **{"retention.ms": "86400000"})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "1", **QUIET})
    for number in range(3000):
        producer.produce(name, value=str(number), partition=number % 3)
    assert producer.flush(30) == 0
    before = cluster_state(broker, name)
    getattr(broker, end)()
    broker.start()
    assert cluster_state(broker, name) == before
    for partition in range(3):
        expected = [(offset, b"%d" % (3 * offset + partition)) for offset in range(1000)]
        assert read_partition(broker, name, 1000, partition) == expected


def test_no_acknowledged_record_is_lost_or_doubled_by_kill(make_broker: MakeBroker, name: str) -> None:
    """An idempotent producer writes on while the broker is killed three times: all records once, in order."""
    broker = make_broker()
    create_topic(broker, name, 1, **{"segment.bytes": "1048576"})
    settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 1, **QUIET}
    producer = Producer({**settings, "batch.num.messages": 100, "delivery.timeout.ms": 120_000})
    acknowledged: list[int] = []
    errors: list[Any] = []
    finished = threading.Event()

    def delivered(number: int, error: Any, message: Any) -> None:
        if error is None:
            acknowledged.append(number)
        else:
            errors.append(error)

    def write() -> None:
        number = 0
        while not finished.is_set():
            if number - len(acknowledged) < 2000:
                producer.produce(name, value=f"{number:012}" * 20, on_delivery=partial(delivered, number))
                number += 1
            producer.poll(0.001 if number % 10 == 0 else 0)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            reached = len(acknowledged) + 2000
            until(lambda: len(acknowledged) > reached, timeout_seconds=60)  # noqa: B023 (called before the next round)
            broker.kill()
            pause(0.2)
            broker.start()
    finally:
        finished.set()
        writer.join()
    assert producer.flush(60) == 0
    assert errors == []
    assert acknowledged == list(range(len(acknowledged)))
    stored = read_partition(broker, name, len(acknowledged))
    assert [int(value[:12]) for _, value in stored] == acknowledged


def test_group_goes_on_after_a_kill(make_broker: MakeBroker, name: str) -> None:
    broker = make_broker()
    create_topic(broker, name)
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    for number in range(200):
        producer.produce(name, value=str(number))
    assert producer.flush(30) == 0
    group = {"group.id": name, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "session.timeout.ms": 6000, **group, **QUIET})
    consumer.subscribe([name])
    values: list[bytes] = []

    def take(count: int) -> bool:
        message: Any = consumer.poll(0.2)
        if message is not None and not message.error():
            values.append(message.value())
        return len(values) >= count

    until(lambda: take(100), every_seconds=0)
    consumer.commit(asynchronous=False)
    broker.kill()
    broker.start()
    until(lambda: take(200), every_seconds=0, timeout_seconds=60)
    assert values == [b"%d" % number for number in range(200)]
    consumer.close()


def test_quotas_and_passwords_outlive_a_kill(make_broker: MakeBroker) -> None:
    broker = make_broker()
    rates = AlterClientQuotasRequest(entries=[make_alteration({"user": "alice"}, ("request_percentage", 12.5))])
    secrets = AlterUserScramCredentialsRequest(upsertions=[make_upsertion("alice", SHA_512, 8192)])
    with RawClient(broker.port) as client:
        client.call(rates, AlterClientQuotasResponse, 1)
        client.call(secrets, AlterUserScramCredentialsResponse, 0)
    broker.kill()
    broker.start()
    until(lambda: quotas_of(broker.port, "alice") == {"request_percentage": 12.5})
    until(lambda: list_credentials(broker.port) == {"alice": [(SHA_512, 8192)]})
