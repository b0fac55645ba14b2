"""Transactions of a whole broker: its topic, its partitions, and the next process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.transactions.answers import ProducerAnswer
from kafkacompat.transactions.state import Ending
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.transactions.transaction import ProducerIdentity
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import read_header, read_records, split_batches
from tests.kafkacompat.test_broker import World as BrokerWorld

ID = "tx"
PROPERTIES = {
    "transaction_state_log_num_partitions": "2",
    "transaction_state_log_replication_factor": "1",
    "transaction_state_log_min_isr": "1",
    "transaction_state_log_segment_bytes": "2097152",
}


class World(BrokerWorld):
    """A broker with the transactions topic and, made behind it, the topic t of two partitions."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.current = self.start(**PROPERTIES)
        self.run(self.current.coordinators.transactions.ensure_topic())
        self.make_topic(self.current, "t")

    def restart(self) -> None:
        self.stop(self.current)
        self.current = self.start(**PROPERTIES)
        self.turn()

    def turn(self) -> None:
        """Let the reactor turn, and what is loaded a piece at a time be loaded."""
        for _ in range(5):
            self.reactor.advance(0.01)

    def init(self) -> ProducerIdentity:
        answer = self.run(self.current.coordinators.transactions.initialize(ID, 60_000, None))
        assert answer.error_code == 0
        return ProducerIdentity(*answer.producer)

    def begin(self) -> ProducerIdentity:
        producer = self.init()
        code = self.current.coordinators.transactions.add_partitions(ID, producer, [("t", 0), ("t", 1)], 0)
        assert (code if isinstance(code, ErrorCode) else self.run(code)) == ErrorCode.NONE
        return producer

    def end(self, producer: ProducerIdentity, ending: Ending = Ending.COMMIT) -> ProducerAnswer:
        answer: ProducerAnswer = self.run(self.current.coordinators.transactions.end(ID, producer, ending, 0))
        return answer

    def state(self) -> str:
        return self.current.coordinators.transactions.describe(ID).transaction_state

    def markers(self, partition: int) -> list[tuple[int, bytes, bytes]]:
        """The control records of a partition of t: (producer id, key, value)."""
        region = self.current.replica_manager.find("t", partition).log.read(0, 1 << 20)
        if region is None:
            return []
        data = region.pread(0, region.size_bytes)
        region.release()
        return [
            (read_header(batch).producer_id, bytes(record.key or b""), bytes(record.value or b""))
            for batch in split_batches(data)
            if read_header(batch).is_control
            for record in read_records(batch)
        ]


def coordinator_epoch(value: bytes) -> int:
    return int.from_bytes(value[2:6], "big")


def test_the_topic_is_made_as_configured(tmp_path: Path) -> None:
    world = World(tmp_path)
    image = world.current.metadata.image
    assert len(image.topics[TRANSACTION_TOPIC].partitions) == 2
    assert image.config(ResourceType.TOPIC, TRANSACTION_TOPIC) == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "2097152",
        "unclean.leader.election.enable": "false",
    }
    world.stop(world.current)


def test_markers_are_in_the_partitions_when_a_transaction_is_complete(tmp_path: Path) -> None:
    world = World(tmp_path)
    producer = world.begin()
    assert world.end(producer).error_code == 0
    assert world.state() == "CompleteCommit"
    for partition in (0, 1):
        ((producer_id, key, value),) = world.markers(partition)
        assert (producer_id, key) == (producer.producer_id, b"\0\0\0\1")
        assert coordinator_epoch(value) == 0
    world.stop(world.current)
    assert world.timers() == 0


def test_an_open_transaction_goes_on_in_the_next_process(tmp_path: Path) -> None:
    world = World(tmp_path)
    producer = world.begin()
    world.restart()
    assert world.state() == "Ongoing"
    assert world.end(producer, Ending.ABORT).error_code == 0
    ((_, key, value),) = world.markers(0)
    assert key == b"\0\0\0\0"
    # That of the partition's leader, which is another one with each start.
    assert coordinator_epoch(value) == 1
    assert world.init() == (producer.producer_id, producer.producer_epoch + 1)
    world.stop(world.current)


def test_a_decided_transaction_is_completed_by_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    producer = world.begin()

    def refuse(self: Any, marker: Marker, now_ms: int) -> None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the test refuses")

    with monkeypatch.context() as patched:
        patched.setattr("kafkacompat.partitions.partition.Partition.append_marker", refuse)
        assert world.end(producer).error_code == 0
        assert world.state() == "PrepareCommit"
        world.restart()
        assert world.state() == "PrepareCommit"
    world.reactor.advance(10)
    assert world.state() == "CompleteCommit"
    assert [len(world.markers(partition)) for partition in (0, 1)] == [1, 1]
    world.stop(world.current)
    assert world.timers() == 0


def test_partitions_that_are_deleted_need_no_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    producer = world.begin()
    image = world.current.metadata.image.topics["t"]
    assert world.run(world.current.controller.delete_topics([image.topic_id])) == [None]
    assert world.end(producer).error_code == 0
    assert world.state() == "CompleteCommit"
    world.stop(world.current)


def test_with_the_topic_its_coordinator_goes(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.begin()
    image = world.current.metadata.image.topics[TRANSACTION_TOPIC]
    assert world.run(world.current.controller.delete_topics([image.topic_id])) == [None]
    described = world.current.coordinators.transactions.describe(ID)
    assert described.error_code == ErrorCode.NOT_COORDINATOR
    world.run(world.current.coordinators.transactions.ensure_topic())
    assert world.current.coordinators.transactions.describe(ID).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    world.stop(world.current)
