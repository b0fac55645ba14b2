"""A partition moves between log directories while a real client writes to it and reads from it."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer

from compat_tests.brokers import Broker
from compat_tests.conftest import MakeBroker
from compat_tests.raw_client import RawClient
from compat_tests.same_answers.log_directories import Directories
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)

SEGMENT_BYTES = 1 << 20
VALUE = b"v" * 1000
MOVES = 6


class Load:
    """An idempotent producer of numbered records; ``acknowledged`` are those that are promised to be there."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.acknowledged: set[int] = set()
        self.failed: list[str] = []
        self._topic = topic
        self._numbers = itertools.count()
        settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 2, "log_level": 0}
        self._producer = Producer(settings)

    def write(self, count: int) -> None:
        """Write some records; earlier ones are acknowledged in the meantime."""
        for number in itertools.islice(self._numbers, count):
            self._producer.produce(self._topic, VALUE, key=str(number).encode(), on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.acknowledged.add(int(message.key() or b"-1"))

    def finish(self) -> None:
        assert self._producer.flush(30) == 0


def ask_to_move(broker: Broker, topic: str, path: str) -> None:
    moved = AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])])
    with RawClient(broker.port) as client:
        answer = client.call(AlterReplicaLogDirsRequest(dirs=[moved]), AlterReplicaLogDirsResponse, 2)
    assert answer.results[0].partitions[0].error_code == 0


def is_there(directories: Directories, path: str) -> bool:
    """Whether the topic's only partition lives in a directory."""
    return [partition.is_future_key for partition in directories.contents(path)] == [False]


def read_all(broker: Broker, topic: str, count: int) -> list[int]:
    """The numbers of the records, in the order of the log."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    numbers: list[int] = []

    def has_all() -> bool:
        numbers.extend(int(message.key()) for message in consumer.consume(5000, timeout=0.1) if message.error() is None)
        return len(numbers) >= count

    until(has_all)
    consumer.close()
    return numbers


@pytest.fixture
def moving(make_broker: MakeBroker, tmp_path: Path) -> Broker:
    return make_broker({"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"})


def test_nothing_is_lost_doubled_or_refused_while_a_partition_moves(moving: Broker, name: str) -> None:
    script = Transcript(moving.port)
    script.create_topic(name, segment_bytes=str(SEGMENT_BYTES))
    directories, load = Directories(script, name), Load(moving, name)
    load.write(10_000)
    for _ in range(MOVES):
        _, other = directories.homes()
        ask_to_move(moving, name, other)
        load.write(2_000)
        until(partial(is_there, directories, other))
    load.finish()
    script.close()
    assert load.failed == []
    total = 10_000 + MOVES * 2_000
    assert load.acknowledged == set(range(total))
    assert read_all(moving, name, total) == list(range(total))


@pytest.mark.parametrize("attempt", (0, 2))
def test_acknowledged_records_survive_a_kill_during_a_move(moving: Broker, name: str, attempt: int) -> None:
    script = Transcript(moving.port)
    script.create_topic(name, segment_bytes=str(SEGMENT_BYTES))
    load = Load(moving, name)
    load.write(20_000)
    load.finish()
    _, other = Directories(script, name).homes()
    ask_to_move(moving, name, other)
    load.write(1_000 * attempt)
    script.close()
    promised = set(load.acknowledged)
    moving.kill()
    moving.start()
    numbers = read_all(moving, name, len(promised))
    assert promised <= set(numbers)
    assert numbers == list(range(len(numbers)))
    after = Transcript(moving.port)
    directories = Directories(after, name)
    until(
        lambda: (
            not any(partition.is_future_key for path in directories.homes() for partition in directories.contents(path))
        )
    )
    after.close()
    load.finish()
