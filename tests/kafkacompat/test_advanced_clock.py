"""Everything of a broker that waits for time follows the clock that a test advances, while its clients live in real time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.adjustable_reactor import AdjustableReactor
from kafkacompat.broker import Broker
from kafkacompat.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkacompat.wire.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsRequest
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkacompat.wire.apis.sync_group import SyncGroupRequest
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch, read_header, read_records, split_batches
from tests.fakes.memory_host import MemoryHost
from tests.kafkacompat.faults.world import make_fetch, make_produce
from tests.kafkacompat.test_broker_over_memory_network import HOST, World

HOUR_S = 3600


class ClockWorld(World):
    """A broker on a clock of its own, ``broker_clock``, over the clock of the network and of the clients."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.broker_clock = AdjustableReactor(self.clock)
        host = MemoryHost(self.broker_clock, self.network.at(HOST), files=self.files)
        properties = {**self.broker.config.given, "transaction.state.log.num.partitions": "1"}
        self.broker = Broker(host, type(self.broker.config)(properties))
        self.run(self.broker.start())

    def advance(self, duration_s: float) -> None:
        """Advance the broker's clock; no time passes for its clients."""
        before_s = self.clock.seconds()
        self.run(self.broker_clock.advance(duration_s))
        assert self.clock.seconds() - before_s < 1

    def create(self, name: str, **configs: str) -> None:
        wanted = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=wanted)
        assert self.ask(CreateTopicsRequest(topics=[topic])).topics[0].error_code == 0

    def append(self, topic: str, key: bytes, value: bytes) -> None:
        request = make_produce("", 0)
        request.topic_data[0].topic_id = self.broker.metadata.image.topics[topic].topic_id
        batch = build_batch([(int(self.broker_clock.seconds() * 1000), key, value, [])])
        request.topic_data[0].partition_data[0].records = batch
        assert self.ask(request).responses[0].partition_responses[0].error_code == 0

    def fetch(self, topic: str, **limits: Any) -> Any:
        request = make_fetch("", 0, **limits)
        request.topics[0].topic_id = self.broker.metadata.image.topics[topic].topic_id
        return request

    def read(self, topic: str) -> list[bytes | None]:
        """Return the values of a topic."""
        values: list[bytes | None] = []
        offset = 0
        while True:
            (data,) = self.ask(self.fetch(topic, offset=offset, max_wait_ms=0)).responses[0].partitions
            batches = list(split_batches(bytes(data.records or b"")))
            if not batches:
                return values
            values += [record.value for batch in batches for record in read_records(batch)]
            offset = read_header(batches[-1]).last_offset + 1

    def find_coordinator(self, key: str, key_type: int) -> None:
        """Wait until the coordinator serves."""
        for _ in range(100):
            answer = self.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])).coordinators[0]
            if not answer.error_code:
                return
        raise AssertionError(answer)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ClockWorld]:
    made = ClockWorld(tmp_path)
    yield made
    made.connections.close()
    made.run(made.broker.stop())
    assert made.broker_clock.getDelayedCalls() == made.clock.getDelayedCalls() == []


def test_retention(world: ClockWorld) -> None:
    world.create("t", retention_ms=str(24 * HOUR_S * 1000))
    world.append("t", b"k", b"old")
    world.advance(23 * HOUR_S)
    assert world.read("t") == [b"old"]
    world.advance(2 * HOUR_S)
    (data,) = world.ask(world.fetch("t", max_wait_ms=0)).responses[0].partitions
    assert (data.error_code, data.log_start_offset, data.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1)


def test_compaction_lag(world: ClockWorld) -> None:
    world.create("t", cleanup_policy="compact", min_compaction_lag_ms=str(24 * HOUR_S * 1000), segment_ms="60000")
    world.append("t", b"k", b"older")
    world.append("t", b"k", b"newer")
    world.advance(HOUR_S)
    world.append("t", b"other", b"in the next segment")
    world.advance(2 * HOUR_S)
    assert world.read("t") == [b"older", b"newer", b"in the next segment"]
    world.advance(25 * HOUR_S)
    assert world.read("t") == [b"newer", b"in the next segment"]


def test_session_timeout(world: ClockWorld) -> None:
    world.find_coordinator("g", 0)
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    joining = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    joining.member_id = world.ask(joining).member_id
    answering = world.begin(joining)
    world.advance(5)
    joined = world.run(answering)
    assert joined.error_code == 0
    identity = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
    assert world.ask(SyncGroupRequest(**identity, protocol_type="consumer", protocol_name="range")).error_code == 0
    world.advance(9)
    assert world.ask(HeartbeatRequest(**identity)).error_code == 0
    world.advance(11)
    assert world.ask(HeartbeatRequest(**identity)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_transaction_timeout(world: ClockWorld) -> None:
    world.create("t")
    world.find_coordinator("x", 1)
    producer = world.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000))
    assert producer.error_code == 0
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="x",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    added = world.ask(AddPartitionsToTxnRequest(transactions=[transaction]))
    assert added.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code == 0

    def find_state() -> str:
        (described,) = world.ask(DescribeTransactionsRequest(transactional_ids=["x"])).transaction_states
        return str(described.transaction_state)

    world.advance(55)
    assert find_state() == "Ongoing"
    world.advance(30)
    assert find_state() == "CompleteAbort"


def test_delayed_fetch(world: ClockWorld) -> None:
    world.create("t")
    answers: list[Any] = []
    world.begin(world.fetch("t", max_wait_ms=25_000)).addCallback(answers.append)
    for _ in range(5):
        world.clock.advance(0.01)
    assert answers == []
    world.advance(26)
    world.clock.advance(0.01)
    assert [answer.responses[0].partitions[0].error_code for answer in answers] == [0]


def test_quota_windows(world: ClockWorld) -> None:
    world.create("t")
    entity = [EntityData(entity_type="client-id", entity_name="broker-2")]
    quota = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=1000.0)])
    assert world.ask(AlterClientQuotasRequest(entries=[quota])).entries[0].error_code == 0
    world.append("t", b"k", b"v" * 100_000)
    answering = world.begin(HeartbeatRequest(group_id="g", member_id="m"))
    for _ in range(100):
        world.clock.advance(0.01)
    assert not answering.called
    world.advance(100)
    assert world.run(answering).error_code != 0
