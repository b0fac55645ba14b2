"""Produce with transactions: verification, its failures, and the codes for old and late producers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkacompat.config import BrokerConfig
from kafkacompat.handlers.context import Pending
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.vouching import FakeVouching
from tests.handlers.data_node import NOW_MS, T_ID, DataNode
from tests.kafkacompat.metadata.deferreds import has_fired

VERIFYING, ABORTABLE, ADDING = 9, 11, 12


class World(DataNode):
    """A node whose transaction coordinator is a fake."""

    def __init__(self, verification: str = "true", **kw: Any) -> None:
        super().__init__(**kw)
        self.coordinator = FakeVouching()
        config = BrokerConfig({"node.id": "1", "transaction.partition.verification.enable": verification})
        services: Any = self.services
        services.coordinators = SimpleNamespace(verifier=self.coordinator)
        services.effective = SimpleNamespace(config=config)

    @property
    def partition(self) -> Partition:
        return self.node.replicas.find("t", 0)

    def produce(self, *batches: bytes, version: int = VERIFYING, acks: int = -1) -> list[PartitionProduceResponse]:
        response = self.ask(make_request(*batches, acks=acks, version=version), ProduceResponse, version)
        return response.responses[0].partition_responses

    def code(self, sent: bytes, version: int = VERIFYING) -> ErrorCode:
        return ErrorCode(self.produce(sent, version=version)[0].error_code)

    def send_late(self, sent: bytes, version: int = VERIFYING) -> Any:
        return self.send(make_request(sent, version=version), version)

    def end(self, *, commit: bool = True, epoch: int = 0, version: int = 0, coordinator_epoch: int = 0) -> None:
        self.partition.append_marker(Marker(7, epoch, coordinator_epoch, commit, version), NOW_MS)
        self.node.work()

    def codes(self, pending: Any, version: int = VERIFYING) -> list[int]:
        response = self.read(pending, ProduceResponse, version)
        return [partition.error_code for partition in response.responses[0].partition_responses]


def make_batch(
    sequence: int = 0, *, producer_id: int = 7, epoch: int = 0, count: int = 1, transactional: bool = True
) -> bytes:
    return build_batch(
        [(NOW_MS, b"k", b"v", [])] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def make_request(*batches: bytes, acks: int = -1, version: int = VERIFYING) -> ProduceRequest:
    """One batch for each partition of t."""
    partitions = [PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)]
    name, topic_id = ("", T_ID) if version >= 13 else ("t", bytes(16))
    return ProduceRequest(
        transactional_id="tx",
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=name, topic_id=topic_id, partition_data=partitions)],
    )


@pytest.mark.parametrize(
    ("version", "add"), [(3, False), (VERIFYING, False), (ABORTABLE, False), (ADDING, True), (13, True)]
)
def test_the_coordinator_is_asked_once_about_all_partitions_of_a_request(version: int, add: bool) -> None:
    world = World()
    assert [answer.error_code for answer in world.produce(make_batch(), make_batch(), version=version)] == [0, 0]
    assert world.coordinator.asked == [("tx", 7, 0, [("t", 0), ("t", 1)], add)]
    assert [answer.base_offset for answer in world.produce(make_batch(1), make_batch(1), version=version)] == [1, 1]
    assert len(world.coordinator.asked) == 1


def test_only_the_first_batch_of_a_transaction_is_verified() -> None:
    world = World()
    world.produce(make_batch())
    world.produce(make_batch(1), make_batch())
    world.end()
    world.produce(make_batch(2), make_batch(1))
    assert [request.partitions for request in world.coordinator.asked] == [[("t", 0)], [("t", 1)], [("t", 0)]]


def test_a_newer_epoch_is_asked_about_while_the_older_ones_transaction_is_open() -> None:
    world = World()
    world.produce(make_batch())
    world.coordinator.code = ErrorCode.PRODUCER_FENCED
    assert world.code(make_batch(epoch=1)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.coordinator.asked[-1].producer_epoch == 1


@pytest.mark.parametrize(
    ("said", "version", "code"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 3, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 12, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.INVALID_TXN_STATE, 12, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_the_coordinators_code_is_translated_for_the_version(said: ErrorCode, version: int, code: ErrorCode) -> None:
    world = World()
    world.coordinator.code = said
    assert world.code(make_batch(), version) == code
    assert world.partition.log.log_end_offset == 0


def test_where_partitions_are_not_verified_only_those_that_are_to_be_added_are_asked_about() -> None:
    world = World(verification="false")
    world.coordinator.code = ErrorCode.TRANSACTION_ABORTABLE
    assert world.code(make_batch(), ABORTABLE) == 0
    assert world.coordinator.asked == []
    world.end()
    assert world.code(make_batch(1, epoch=0), ADDING) == ErrorCode.TRANSACTION_ABORTABLE


def test_batches_of_several_producers_are_refused() -> None:
    world = World()
    answers = world.produce(make_batch(), make_batch(producer_id=8))
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert world.coordinator.asked == []


def test_nothing_overtakes_while_the_coordinator_is_asked() -> None:
    world = World()
    world.coordinator.hold = True
    pending = world.send_late(make_batch())
    assert isinstance(pending, Pending) and pending.in_order
    assert world.partition.log.log_end_offset == 0
    world.coordinator.release()
    assert world.codes(pending) == [0]
    assert world.partition.log.log_end_offset == 1


def test_a_verified_batch_that_awaits_its_sync_holds_up_no_request() -> None:
    world = World(syncs_always=True)
    world.coordinator.hold = True
    pending = world.send_late(make_batch())
    assert not has_fired(pending.settled)
    world.coordinator.release()
    assert has_fired(pending.settled) and not has_fired(pending.response)
    world.node.sync()
    assert world.codes(pending) == [0]


def test_a_verified_batch_that_awaits_a_segment_holds_up_the_next_request() -> None:
    world = World(config=LogConfig(segment_bytes=100))
    world.produce(make_batch(transactional=False, producer_id=8))
    world.coordinator.hold = True
    pending = world.send_late(make_batch())
    world.coordinator.release()
    assert not (has_fired(pending.settled) or has_fired(pending.response))
    world.node.work()
    assert world.codes(pending) == [0]


def test_an_answer_that_comes_after_the_marker_lets_nothing_in() -> None:
    world = World()
    world.coordinator.hold = True
    late = world.send_late(make_batch())
    world.end(commit=False)
    world.coordinator.release()
    assert world.codes(late) == [ErrorCode.INVALID_TXN_STATE]
    assert world.partition.last_stable_offset == 1


def test_nor_does_it_when_the_next_transaction_is_being_asked_about() -> None:
    world = World()
    world.coordinator.hold = True
    late = world.send_late(make_batch())
    world.end(commit=False)
    next_one = world.send_late(make_batch())
    world.coordinator.release()
    assert world.codes(late) == [ErrorCode.INVALID_TXN_STATE]
    world.coordinator.release()
    assert world.codes(next_one) == [0]


def test_a_marker_of_the_epoch_of_the_next_transaction_stops_not_that() -> None:
    # From transaction version 2 on a marker has the epoch that the producer goes on with.
    world = World()
    world.produce(make_batch(), version=ADDING)
    world.coordinator.hold = True
    next_one = world.send_late(make_batch(epoch=1), ADDING)
    world.end(epoch=1, version=2)
    world.coordinator.release()
    assert world.codes(next_one, ADDING) == [0]


def test_batches_that_are_sent_together_wait_for_the_same_answer() -> None:
    world = World()
    world.coordinator.hold = True
    first, second = world.send_late(make_batch()), world.send_late(make_batch(1))
    world.coordinator.release()
    world.coordinator.release()
    assert (world.codes(first), world.codes(second)) == ([0], [0])


@pytest.mark.parametrize("version", [VERIFYING, ADDING])
def test_no_batch_comes_before_one_that_was_refused_for_a_reason_that_passes(version: int) -> None:
    world = World()
    world.coordinator.code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.code(make_batch(), version) == ErrorCode.NOT_ENOUGH_REPLICAS
    world.coordinator.code = ErrorCode.NONE
    assert world.code(make_batch(1), version) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.code(make_batch(), version) == 0
    assert world.code(make_batch(1), version) == 0


def test_a_transaction_of_an_epoch_of_its_own_begins_with_sequence_0() -> None:
    world = World()
    assert world.code(make_batch(3), ADDING) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert World().code(make_batch(3), ABORTABLE) == 0


def test_a_retry_is_answered_as_the_first_time_while_the_transaction_is_open() -> None:
    world = World()
    for sequence in range(6):
        world.produce(make_batch(sequence))
    again = [world.produce(make_batch(sequence))[0] for sequence in range(1, 6)]
    assert [(answer.error_code, answer.base_offset) for answer in again] == [(0, sequence) for sequence in range(1, 6)]
    assert world.code(make_batch()) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert world.partition.log.log_end_offset == 6


@pytest.mark.parametrize("coordinator_epoch", [0, -1])
def test_a_reused_sequence_of_an_earlier_transaction_is_no_retry(coordinator_epoch: int) -> None:
    # A client that gave a batch up, which was stored all the same, uses its sequence number again for another.
    world = World()
    world.produce(make_batch())
    world.produce(make_batch(1))
    world.end(commit=False, coordinator_epoch=coordinator_epoch)
    assert world.code(make_batch(1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert world.code(make_batch(2)) == 0
    assert world.code(make_batch(1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert world.code(make_batch(2)) == 0
    assert world.partition.log.log_end_offset == 4


def test_while_a_transaction_is_open_its_producer_writes_nothing_else() -> None:
    world = World()
    world.produce(make_batch())
    assert world.code(make_batch(1, transactional=False)) == ErrorCode.INVALID_TXN_STATE
    world.end()
    assert world.code(make_batch(1, transactional=False)) == 0


def test_a_producer_of_an_old_epoch_is_fenced_without_a_verification() -> None:
    world = World()
    world.produce(make_batch(epoch=1))
    world.end(epoch=1)
    asked = len(world.coordinator.asked)
    assert world.code(make_batch(1, epoch=0)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(world.coordinator.asked) == asked


def test_malformed_batches_are_refused_without_a_verification() -> None:
    world = World()
    answers = world.produce(b"", make_batch()[:-1])
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD]
    (absent,) = (
        world.ask(
            ProduceRequest(
                transactional_id="tx",
                acks=-1,
                timeout_ms=1000,
                topic_data=[
                    TopicProduceData(
                        name="absent", partition_data=[PartitionProduceData(index=0, records=make_batch())]
                    )
                ],
            ),
            ProduceResponse,
            VERIFYING,
        )
        .responses[0]
        .partition_responses
    )
    assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
