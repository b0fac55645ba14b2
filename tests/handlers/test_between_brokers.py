"""Requests of the controller and of other brokers."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.handlers import INTER_BROKER_HANDLERS
from kafkacompat.handlers.context import Pending
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.compiler import decode_message, encode_message
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.cluster_role import FakeLink, FakeRole
from tests.handlers.node import context_of, make_services, reread_response
from tests.kafkacompat.metadata.deferreds import outcome, refusal
from tests.wire.random_messages import Mode, make_message, seeded_random

ENVELOPE, ALTER_PARTITION = 58, 56
IN_ORDER = {4, 5}
CASES = [
    (key, version) for key, handler in INTER_BROKER_HANDLERS.items() for version in handler.versions if key != ENVELOPE
]


def handle(key: int, version: int, role: FakeRole) -> Any:
    """Return the result of the handler for a random request, and the request."""
    made = make_message(find_api(key).request, version, seeded_random(), Mode.RANDOM)
    request = decode_message(type(made), encode_message(made, version), version)
    return INTER_BROKER_HANDLERS[key].handle(request, context_of(version), make_services(cluster=role)), request


@pytest.mark.parametrize(("key", "version"), CASES)
def test_the_cluster_answers(key: int, version: int) -> None:
    role = FakeRole(FakeLink())
    response, request = handle(key, version, role)
    if isinstance(response, Pending):
        assert response.in_order == (key in IN_ORDER) and not response.abandonable
        response = outcome(response.response)
    answer: Any = reread_response(response, find_api(key).response, version)
    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert role.orders == [(request, version) if key == ALTER_PARTITION else request]


@pytest.mark.parametrize("key", sorted({key for key, _ in CASES}))
def test_failures_reach_the_dispatcher(key: int) -> None:
    role = FakeRole(FakeLink())
    role.failure = KafkaError(ErrorCode.NOT_CONTROLLER, "another broker is the controller")
    try:
        pending, _ = handle(key, 0, role)
    except KafkaError as problem:
        assert problem.code == ErrorCode.NOT_CONTROLLER
    else:
        assert refusal(pending.response) == ErrorCode.NOT_CONTROLLER
    assert "error_code" in find_api(key).response.FIELDS
