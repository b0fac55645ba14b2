"""Groups of confluent-kafka (librdkafka): rebalances of each kind, and committed offsets."""

from __future__ import annotations

from collections import Counter

from confluent_kafka import (
    KafkaException,
    TopicPartition,
)

from compat_tests.brokers import Broker
from compat_tests.confluent import consumer_of, create_topic, produce, read
from compat_tests.conftest import MakeBroker
from compat_tests.waiting import until


def test_group_of_three_shares_partitions_and_rebalances(broker: Broker, name: str) -> None:
    create_topic(broker, name, 6)
    members = [consumer_of(broker, name) for _ in range(3)]
    for member in members:
        member.subscribe([name])

    def shares() -> list[int]:
        for member in running:
            member.poll(0.05)
        return sorted(len(member.assignment()) for member in running)

    running = members
    until(lambda: shares() == [2, 2, 2], every_seconds=0)
    held = [(part.topic, part.partition) for member in running for part in member.assignment()]
    assert sorted(held) == [(name, number) for number in range(6)]
    produce(broker, name, [str(number) for number in range(600)])
    seen: Counter[bytes] = Counter()

    def consumed() -> bool:
        for member in running:
            for message in member.consume(200, 0.1):
                seen[message.value()] += 1
        return len(seen) == 600

    until(consumed, every_seconds=0)
    assert set(seen.values()) == {1}
    members[0].close()
    running = members[1:]
    until(lambda: shares() == [3, 3], every_seconds=0)
    for member in running:
        member.close()


def test_cooperative_sticky_assignor(broker: Broker, name: str) -> None:
    create_topic(broker, name, 4)
    strategy = {"partition.assignment.strategy": "cooperative-sticky"}
    first, second = consumer_of(broker, name, **strategy), consumer_of(broker, name, **strategy)
    first.subscribe([name])
    until(lambda: (first.poll(0.05), len(first.assignment()) == 4)[1], every_seconds=0)
    second.subscribe([name])

    def balanced() -> bool:
        for member in (first, second):
            member.poll(0.05)
        return len(first.assignment()) == len(second.assignment()) == 2

    until(balanced, every_seconds=0)
    first.close()
    second.close()


def test_static_member_keeps_its_partitions_over_a_restart(broker: Broker, name: str) -> None:
    create_topic(broker, name, 2)
    rebalances: list[str] = []
    staying = consumer_of(broker, name, **{"group.instance.id": "staying", "session.timeout.ms": 30000})
    staying.subscribe([name], on_assign=lambda *_: rebalances.append("assigned"))
    moving = consumer_of(broker, name, **{"group.instance.id": "moving", "session.timeout.ms": 30000})
    moving.subscribe([name])

    def one_each() -> bool:
        staying.poll(0.05)
        moving.poll(0.05)
        return len(staying.assignment()) == len(moving.assignment()) == 1

    until(one_each, every_seconds=0)
    before, held = len(rebalances), moving.assignment()
    moving.close()
    moving = consumer_of(broker, name, **{"group.instance.id": "moving", "session.timeout.ms": 30000})
    moving.subscribe([name])
    until(one_each, every_seconds=0)
    assert moving.assignment() == held
    assert len(rebalances) == before
    staying.close()
    moving.close()


def test_committed_offsets_are_where_the_group_goes_on(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, [str(number) for number in range(10)])
    consumer = consumer_of(broker, name)
    consumer.subscribe([name])
    messages = read(consumer, 4)
    consumer.commit(message=messages[3], asynchronous=False)
    assert consumer.committed([TopicPartition(name, 0)], timeout=10)[0].offset == 4
    consumer.close()
    again = consumer_of(broker, name)
    again.subscribe([name])
    assert read(again, 1)[0].offset() == 4
    again.close()


def test_committed_offsets_survive_a_restart(make_broker: MakeBroker, name: str) -> None:
    broker = make_broker()
    create_topic(broker, name, 2)
    produce(broker, name, [str(number) for number in range(20)])
    consumer = consumer_of(broker, name)
    consumer.subscribe([name])
    read(consumer, 20)
    consumer.commit(asynchronous=False)
    parts = [TopicPartition(name, number) for number in range(2)]
    before = [part.offset for part in consumer.committed(parts, timeout=10)]
    consumer.close()
    assert sum(before) == 20
    broker.stop()
    broker.start()
    again = consumer_of(broker, name)

    def committed() -> list[int]:
        try:
            return [part.offset for part in again.committed(parts, timeout=10)]
        except KafkaException:  # a coordinator that still reads its offsets says so, and the client gives up
            return []

    assert until(committed) == before
    again.close()
