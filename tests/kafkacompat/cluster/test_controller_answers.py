"""The controller's answers to requests of brokers, and the refusals of a broker that is not the controller."""

from __future__ import annotations

from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.cluster.active_controller import ActiveController
from kafkacompat.cluster.controller_answers import ControllerAnswers
from kafkacompat.cluster.decisions.in_sync_changes import InSyncChange, InSyncRequest
from kafkacompat.cluster.decisions.situation import TopicPartition
from kafkacompat.metadata.image import PartitionImage
from kafkacompat.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest
from kafkacompat.wire.apis.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kafkacompat.wire.apis.controlled_shutdown import ControlledShutdownRequest
from kafkacompat.wire.errors import ErrorCode, KafkaError

TOPIC_ID = bytes(range(16))


class DecidedController:
    """Answers each request with ``outcome``, and records it."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.requests: list[Any] = []

    def change_in_sync_sets(self, request: InSyncRequest) -> Deferred[Any]:
        return self._answer(request)

    def shut_down_broker(self, broker_id: int, broker_epoch: int) -> Deferred[Any]:
        return self._answer((broker_id, broker_epoch))

    def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> Deferred[Any]:
        return self._answer((broker_id, broker_epoch))

    def _answer(self, request: Any) -> Deferred[Any]:
        self.requests.append(request)
        return fail(self.outcome) if isinstance(self.outcome, KafkaError) else succeed(self.outcome)


def make_answers(controller: DecidedController) -> ControllerAnswers:
    return ControllerAnswers(lambda: cast(ActiveController, controller))


def run(coroutine: Any) -> Any:
    results: list[Any] = []
    Deferred.fromCoroutine(coroutine).addBoth(results.append)
    return results[0]


def build_change(version: int) -> AlterPartitionRequest:
    members = [BrokerState(broker_id=1, broker_epoch=10), BrokerState(broker_id=2, broker_epoch=20)]
    partition = PartitionData(partition_index=3, leader_epoch=5, partition_epoch=7)
    if version > 2:
        partition.new_isr_with_epochs = members
    else:
        partition.new_isr = [1, 2]
    topic = TopicData(topic_name="t", topic_id=TOPIC_ID, partitions=[partition])
    return AlterPartitionRequest(broker_id=1, broker_epoch=10, topics=[topic])


@pytest.mark.parametrize(("version", "topic", "epochs"), [(1, "t", ()), (2, TOPIC_ID, ()), (3, TOPIC_ID, (10, 20))])
def test_in_sync_sets_of_each_version(version: int, topic: str | bytes, epochs: tuple[int, ...]) -> None:
    changed = PartitionImage(3, 1, 5, (1, 2), (1, 2), 8)
    controller = DecidedController([changed])
    response = run(make_answers(controller).alter_partition(build_change(version), version))
    change = InSyncChange(topic, 3, 5, 7, (1, 2), epochs, False)
    assert controller.requests == [InSyncRequest(1, 10, version, [change])]
    (result,) = response.topics[0].partitions
    assert (result.leader_id, result.leader_epoch, result.isr, result.partition_epoch) == (1, 5, [1, 2], 8)


def test_a_change_that_fails_has_its_error() -> None:
    controller = DecidedController([ErrorCode.INVALID_UPDATE_VERSION])
    response = run(make_answers(controller).alter_partition(build_change(3), 3))
    assert response.topics[0].partitions[0].error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_a_broker_that_stops_learns_which_partitions_it_leads() -> None:
    controller = DecidedController((TopicPartition("t", 1),))
    response = run(make_answers(controller).shut_down_broker(ControlledShutdownRequest(broker_id=1, broker_epoch=10)))
    assert controller.requests == [(1, 10)]
    assert [(left.topic_name, left.partition_index) for left in response.remaining_partitions] == [("t", 1)]


def test_a_block_of_producer_ids() -> None:
    answers = make_answers(DecidedController(range(1000, 2000)))
    response = run(answers.allocate_producer_ids(AllocateProducerIdsRequest(broker_id=1, broker_epoch=10)))
    assert (response.producer_id_start, response.producer_id_len) == (1000, 1000)


def test_every_request_has_the_error_of_a_controller_that_resigns() -> None:
    answers = make_answers(DecidedController(KafkaError(ErrorCode.NOT_CONTROLLER, "another broker is the controller")))
    responses = [
        run(answers.alter_partition(build_change(3), 3)),
        run(answers.shut_down_broker(ControlledShutdownRequest(broker_id=1, broker_epoch=10))),
        run(answers.allocate_producer_ids(AllocateProducerIdsRequest(broker_id=1, broker_epoch=10))),
    ]
    assert [response.error_code for response in responses] == [ErrorCode.NOT_CONTROLLER] * 3
