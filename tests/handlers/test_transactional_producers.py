"""The coordinator of a transactional id, and the producers that may write for it, in every version."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.wire.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.handlers.test_transactions import FENCED, OLD_FENCED, init_producer
from tests.handlers.transaction_node import TransactionNode
from tests.kafkacompat.transactions.support import ID, is_waiting

# FindCoordinator


def find_coordinator(node: TransactionNode, version: int) -> Coordinator:
    request = FindCoordinatorRequest(key_type=1, key=ID, coordinator_keys=[ID] if version >= 4 else [])
    response = node.ask(request, FindCoordinatorResponse, version)
    if version >= 4:
        return response.coordinators[0]
    code, message = response.error_code, response.error_message
    return Coordinator(node_id=response.node_id, host=response.host, error_code=code, error_message=message)


@pytest.mark.parametrize("version", range(1, 7))
def test_the_coordinator_is_the_leader_of_the_ids_partition(version: int) -> None:
    coordinator = find_coordinator(TransactionNode(), version)
    assert (coordinator.error_code, coordinator.node_id) == (0, 1)


def test_the_first_find_coordinator_creates_the_topic() -> None:
    node = TransactionNode()
    node.set_topics(t=1, __consumer_offsets=4)
    node.making = Deferred()
    waiting = node.send(FindCoordinatorRequest(key_type=1, coordinator_keys=[ID]), 6)
    assert is_waiting(waiting)
    node.set_topics(**{TRANSACTION_TOPIC: 4})
    node.making.callback(None)
    (coordinator,) = node.read(waiting, FindCoordinatorResponse, 6).coordinators
    assert (coordinator.error_code, coordinator.node_id) == (0, 1)


def test_if_the_topic_cannot_be_made_there_is_no_coordinator(caplog: pytest.LogCaptureFixture) -> None:
    node = TransactionNode()
    node.set_topics(t=1)
    node.making = Deferred()
    node.making.errback(Failure(KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "3 replicas, 1 broker")))
    coordinator = find_coordinator(node, 6)
    assert (coordinator.error_code, coordinator.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert "Cannot create topic __transaction_state: INVALID_REPLICATION_FACTOR: 3 replicas, 1 broker" in caplog.text


# InitProducerId


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_id_gets_its_producer(version: int) -> None:
    node = TransactionNode()
    answers = [init_producer(node, version) for _ in range(2)]
    assert [(answer.error_code, answer.producer_id, answer.producer_epoch) for answer in answers] == [
        (0, 100, 0),
        (0, 100, 1),
    ]


@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [
        (0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (-1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (900_000, ErrorCode.NONE),
        (1, ErrorCode.NONE),
    ],
)
def test_a_timeout_has_its_bounds(timeout_ms: int, code: ErrorCode) -> None:
    answer = init_producer(TransactionNode(), timeout_ms=timeout_ms)
    assert answer.error_code == code
    assert (answer.producer_id == -1) == bool(code)


@pytest.mark.parametrize(("version", "code"), [(3, OLD_FENCED), (4, FENCED), (5, FENCED)])
def test_a_fenced_producer_gets_the_code_of_its_version(version: int, code: ErrorCode) -> None:
    node = TransactionNode()
    init_producer(node)
    answer = init_producer(node, version, producer_id=5, producer_epoch=0)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)
    assert init_producer(node, version, producer_id=100, producer_epoch=0).producer_epoch == 1


def test_an_id_without_an_epoch_says_nothing() -> None:
    assert init_producer(TransactionNode(), producer_id=100).error_code == ErrorCode.INVALID_REQUEST
    assert init_producer(TransactionNode(), producer_epoch=0).error_code == ErrorCode.INVALID_REQUEST
