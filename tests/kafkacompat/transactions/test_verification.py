"""What the answers of other coordinators mean; test_cluster.py has whole conversations."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.metadata.image import ImageHolder, PartitionImage, TopicImage
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.transactions.verification import TransactionVerifier
from kafkacompat.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.vouching import FakeVouching
from tests.kafkacompat.groups.support import take_response

PARTITION = ("t", 0)


class Local(FakeVouching):
    """This broker's coordinator; every transactional id is in partition 0."""

    def partition_for(self, transactional_id: str) -> int:
        return 0


class World:
    """Broker 1, and the coordinator on broker 2."""

    def __init__(self, response: AddPartitionsToTxnResponse | Exception) -> None:
        self.metadata = ImageHolder()
        led = PartitionImage(0, 2, 0, (1, 2), (1, 2), 0)
        topic = TopicImage(TRANSACTION_TOPIC, b"s" * 16, (led,))
        self.metadata.publish(self.metadata.image.with_topics({TRANSACTION_TOPIC: topic}))
        self.requests: list[AddPartitionsToTxnRequest] = []
        self.response = response
        self.verifier = TransactionVerifier(1, self.metadata, Local, self.send, 30_000)

    def send(self, node_id: int, purpose: str, request: Any, timeout_s: float) -> Deferred[Any]:
        assert (node_id, timeout_s) == (2, 30)
        self.requests.append(request)
        return fail(self.response) if isinstance(self.response, Exception) else succeed(self.response)

    def verify(self, *, add: bool = False) -> ErrorCode:
        codes = take_response(self.verifier.verify("x", 7, 3, [PARTITION], add=add))
        assert list(codes) == [PARTITION]
        return codes[PARTITION]


def make_answer(code: int, *, name: str = "x", topic: str = "t", error_code: int = 0) -> AddPartitionsToTxnResponse:
    result = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)
    topics = [AddPartitionsToTxnTopicResult(name=topic, results_by_partition=[result])]
    return AddPartitionsToTxnResponse(
        error_code=error_code,
        results_by_transaction=[AddPartitionsToTxnResult(transactional_id=name, topic_results=topics)],
    )


def make_refusal(code: int) -> AddPartitionsToTxnResponse:
    """The refusal of a whole request."""
    return AddPartitionsToTxnResponse(error_code=code)


@pytest.mark.parametrize("add", [False, True])
def test_the_request_says_whether_partitions_are_added(add: bool) -> None:
    world = World(make_answer(0))
    assert world.verify(add=add) is ErrorCode.NONE
    ((transaction,),) = (request.transactions for request in world.requests)
    assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("x", 7, 3)
    assert transaction.verify_only is not add
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", [0])]


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (make_answer(ErrorCode.TRANSACTION_ABORTABLE), ErrorCode.TRANSACTION_ABORTABLE),
        (make_answer(ErrorCode.CONCURRENT_TRANSACTIONS), ErrorCode.CONCURRENT_TRANSACTIONS),
        (make_answer(ErrorCode.PRODUCER_FENCED), ErrorCode.INVALID_PRODUCER_EPOCH),
        (make_refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.INVALID_TXN_STATE),
        (make_refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (make_answer(0, name="y"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (make_answer(0, topic="u"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (make_answer(9999), ErrorCode.NETWORK_EXCEPTION),
        (ConnectionError("gone"), ErrorCode.NETWORK_EXCEPTION),
    ],
)
def test_a_response_becomes_a_code_that_producers_know(
    response: AddPartitionsToTxnResponse | Exception, code: ErrorCode
) -> None:
    assert World(response).verify() is code
