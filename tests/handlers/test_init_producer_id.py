"""InitProducerId: new ids for idempotent producers; transactional ones are in test_transactional_producers."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode


def test_every_producer_gets_an_id_of_its_own() -> None:
    node = AdminNode()
    fresh = InitProducerIdRequest(transactional_id=None)
    held = InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=3)
    answers = [node.ask(request, InitProducerIdResponse, 5) for request in (fresh, fresh, held)]
    assert [(answer.error_code, answer.producer_id, answer.producer_epoch) for answer in answers] == [
        (0, 0, 0),
        (0, 1, 0),
        (0, 2, 0),
    ]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (InitProducerIdRequest(transactional_id=None, producer_id=5), ErrorCode.INVALID_REQUEST),
        (InitProducerIdRequest(transactional_id=None, producer_epoch=5), ErrorCode.INVALID_REQUEST),
        (InitProducerIdRequest(transactional_id=""), ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals(asked: InitProducerIdRequest, code: ErrorCode) -> None:
    response = AdminNode().ask(asked, InitProducerIdResponse, 4)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (code, -1, -1)


def test_a_failing_store() -> None:
    node = AdminNode()
    node.store.failing = True
    response = node.ask(InitProducerIdRequest(transactional_id=None), InitProducerIdResponse, 4)
    assert response.error_code == ErrorCode.KAFKA_STORAGE_ERROR
