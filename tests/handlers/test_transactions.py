"""Requests of producers about their transactions, in every version."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkacompat.handlers.add_partitions_to_txn import SEVERAL_TRANSACTIONS_VERSION
from kafkacompat.timers import TURN_SECONDS
from kafkacompat.transactions.transaction import ProducerIdentity
from kafkacompat.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafkacompat.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kafkacompat.wire.apis.end_txn import EndTxnRequest, EndTxnResponse
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Request
from tests.handlers.transaction_node import TransactionNode
from tests.kafkacompat.transactions.support import ID, P0, P1, TIMEOUT_MS, TiringClock, is_waiting, take_response

FENCED = ErrorCode.PRODUCER_FENCED
OLD_FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_ATTEMPTED = ErrorCode.OPERATION_NOT_ATTEMPTED


def init_producer(
    node: TransactionNode,
    version: int = 5,
    name: str = ID,
    timeout_ms: int = TIMEOUT_MS,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return node.ask(request, InitProducerIdResponse, version)


def a_producer(node: TransactionNode) -> ProducerIdentity:
    answer = init_producer(node)
    return ProducerIdentity(answer.producer_id, answer.producer_epoch)


# AddPartitionsToTxn


def make_topics(*partitions: tuple[str, int]) -> list[AddPartitionsToTxnTopic]:
    return [AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in partitions]


def list_codes(results: Sequence[AddPartitionsToTxnTopicResult]) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.partition_error_code
        for topic in results
        for partition in topic.results_by_partition
    }


def make_add_request(
    producer: ProducerIdentity,
    *partitions: tuple[str, int],
    version: int = 3,
    verify_only: bool = False,
    name: str = ID,
) -> AddPartitionsToTxnRequest:
    if version < SEVERAL_TRANSACTIONS_VERSION:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=make_topics(*partitions),
        )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        verify_only=verify_only,
        topics=make_topics(*partitions),
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def add_partitions(
    node: TransactionNode,
    producer: ProducerIdentity,
    *partitions: tuple[str, int],
    version: int = 3,
    verify_only: bool = False,
    name: str = ID,
) -> dict[tuple[str, int], int]:
    request = make_add_request(producer, *partitions, version=version, verify_only=verify_only, name=name)
    response = node.ask(request, AddPartitionsToTxnResponse, version)
    if version < SEVERAL_TRANSACTIONS_VERSION:
        return list_codes(response.results_by_topic_v3_and_below)
    (result,) = response.results_by_transaction
    assert (response.error_code, result.transactional_id) == (0, name)
    return list_codes(result.topic_results)


@pytest.mark.parametrize("version", range(6))
def test_partitions_are_added(version: int) -> None:
    node = TransactionNode()
    producer = a_producer(node)
    assert add_partitions(node, producer, P0, ("u", 1), P1, P0, version=version) == {P0: 0, ("u", 1): 0, P1: 0}
    (first, second) = node.world.coordinator.describe(ID).topics
    assert (first.topic, first.partitions, second.topic, second.partitions) == ("t", [0, 1], "u", [1])
    node.world.end(producer, version=2)
    assert node.world.partitions.all[P0].markers[0].transaction_version == 2


@pytest.mark.parametrize("version", range(6))
def test_if_one_cannot_be_added_none_is(version: int) -> None:
    node = TransactionNode()
    producer = a_producer(node)
    assert add_partitions(node, producer, P0, ("t", 2), ("absent", 0), version=version) == {
        P0: NOT_ATTEMPTED, ("t", 2): UNKNOWN, ("absent", 0): UNKNOWN,
    }  # fmt: skip
    offsets = ("__consumer_offsets", 0)
    refused = {offsets: ErrorCode.TOPIC_AUTHORIZATION_FAILED, P0: NOT_ATTEMPTED}
    assert add_partitions(node, producer, offsets, P0, version=version) == (
        refused if version < 4 else {offsets: 0, P0: 0}
    )


@pytest.mark.parametrize("version", range(6))
def test_a_refused_producer_gets_a_code_for_each_partition(version: int) -> None:
    node = TransactionNode()
    producer_id, epoch = a_producer(node)
    fenced = OLD_FENCED if version < 2 else FENCED
    assert add_partitions(node, ProducerIdentity(producer_id, epoch + 1), P0, P1, version=version) == {
        P0: fenced,
        P1: fenced,
    }
    assert add_partitions(node, ProducerIdentity(5, 0), P0, version=version) == {P0: MAPPING}
    assert add_partitions(node, ProducerIdentity(5, 0), P0, version=version, name="") == {P0: ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("version", [4, 5])
def test_a_broker_may_only_ask(version: int) -> None:
    node = TransactionNode()
    producer = a_producer(node)
    add_partitions(node, producer, P0)
    asked = add_partitions(node, producer, P0, P1, ("absent", 0), version=version, verify_only=True)
    assert asked == {P0: NOT_ATTEMPTED, P1: NOT_ATTEMPTED, ("absent", 0): UNKNOWN}
    asked = add_partitions(node, producer, P0, P1, version=version, verify_only=True)
    assert asked == {P0: 0, P1: ErrorCode.TRANSACTION_ABORTABLE}


def test_several_transactions_at_a_time_each_have_their_answer() -> None:
    node = TransactionNode()
    producers = {name: init_producer(node, name=name) for name in ("a", "b")}
    node.world.log.hold = True
    transactions = [
        AddPartitionsToTxnTransaction(transactional_id=name, producer_id=producer.producer_id, topics=make_topics(P0))
        for name, producer in [*producers.items(), ("unknown", producers["a"])]
    ]
    waiting = node.send(AddPartitionsToTxnRequest(transactions=transactions), 5)
    assert is_waiting(waiting)
    for held in node.world.log.held:
        held.succeed()
    results = node.read(waiting, AddPartitionsToTxnResponse, 5).results_by_transaction
    assert {result.transactional_id: list_codes(result.topic_results)[P0] for result in results} == {
        "a": 0, "b": 0, "unknown": MAPPING,
    }  # fmt: skip


@pytest.mark.parametrize("version", [3, 5])
def test_many_partitions_leave_others_their_turn(version: int) -> None:
    clock = TiringClock()
    node = TransactionNode(clock)
    node.set_topics(t=30, __transaction_state=4)
    producer = a_producer(node)
    clock.look_s = TURN_SECONDS / 10
    waiting = node.send(make_add_request(producer, *(("t", index) for index in range(30)), version=version), version)
    assert is_waiting(waiting)
    node.world.turn(20)
    assert node.world.state() == "Ongoing"
    assert take_response(waiting)


def test_an_answer_waits_for_the_log() -> None:
    node = TransactionNode()
    producer = a_producer(node)
    node.world.log.hold = True
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_topics=make_topics(P0),
    )
    waiting = node.send(request, 3)
    assert is_waiting(waiting)
    node.world.log.held.pop().fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    answer = node.read(waiting, AddPartitionsToTxnResponse, 3)
    assert list_codes(answer.results_by_topic_v3_and_below) == {P0: ErrorCode.COORDINATOR_NOT_AVAILABLE}


# AddOffsetsToTxn


@pytest.mark.parametrize("version", range(5))
def test_the_offsets_of_a_group_are_added(version: int) -> None:
    node = TransactionNode()
    producer_id, epoch = a_producer(node)
    request = AddOffsetsToTxnRequest(transactional_id=ID, producer_id=producer_id, producer_epoch=epoch, group_id="g")
    assert node.ask(request, AddOffsetsToTxnResponse, version).error_code == 0
    (topic,) = node.world.coordinator.describe(ID).topics
    assert (topic.topic, topic.partitions) == ("__consumer_offsets", [node.groups.coordinator.partition_for("g")])
    assert node.ask(request, AddOffsetsToTxnResponse, version).error_code == 0
    request.producer_epoch += 1
    fenced = OLD_FENCED if version < 2 else FENCED
    assert node.ask(request, AddOffsetsToTxnResponse, version).error_code == fenced


# EndTxn


def end_transaction(
    node: TransactionNode, producer: ProducerIdentity, committed: bool = True, version: int = 5
) -> EndTxnResponse:
    request = EndTxnRequest(
        transactional_id=ID,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=committed,
    )
    return node.ask(request, EndTxnResponse, version)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", range(6))
def test_a_transaction_is_ended(version: int, committed: bool) -> None:
    node = TransactionNode()
    producer = a_producer(node)
    add_partitions(node, producer, P0)
    answer = end_transaction(node, producer, committed, version)
    assert answer.error_code == 0
    assert (answer.producer_id, answer.producer_epoch) == ((100, 1) if version == 5 else (-1, -1))
    assert node.world.markers() == [(100, 1 if version == 5 else 0, committed)]


@pytest.mark.parametrize("version", range(6))
def test_an_end_that_is_refused_names_no_producer(version: int) -> None:
    node = TransactionNode()
    producer_id, epoch = a_producer(node)
    fenced = end_transaction(node, ProducerIdentity(producer_id, epoch + 5), version=version)
    assert fenced.error_code == (OLD_FENCED if version < 2 else FENCED)
    assert (fenced.producer_id, fenced.producer_epoch) == (-1, -1)
    assert (
        end_transaction(node, ProducerIdentity(producer_id, epoch), version=version).error_code
        == ErrorCode.INVALID_TXN_STATE
    )


@pytest.mark.parametrize(
    "request_",
    [
        InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=1000),
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID, v3_and_below_producer_id=100, v3_and_below_topics=make_topics(P0)
        ),
        AddOffsetsToTxnRequest(transactional_id=ID, producer_id=100, group_id="g"),
        EndTxnRequest(transactional_id=ID, producer_id=100),
    ],
    ids=lambda request: type(request).__name__,
)
def test_the_next_request_waits_for_the_effects_of_this_one(request_: Request) -> None:
    node = TransactionNode()
    producer = a_producer(node)
    if isinstance(request_, EndTxnRequest):
        add_partitions(node, producer, P0)
    node.world.log.hold = True
    assert is_waiting(node.send(request_, 3))
    assert node.holds_next
