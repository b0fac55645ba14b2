"""The table of rights: it has every API, and Kafka is asked about each right."""

from __future__ import annotations

import pytest

from compat_tests.authorization.questions import QUESTIONS
from kafkacompat.handlers import HANDLERS, INTER_BROKER_HANDLERS
from kafkacompat.handlers.guards import guard_handlers, rights
from kafkacompat.handlers.guards.table import FETCH_CHECKS, FREE, TABLE
from kafkacompat.quotas.client_quotas import EXEMPT_APIS
from kafkacompat.security.acls.authorizer import Authorizer
from kafkacompat.security.acls.table import NO_ACLS
from kafkacompat.wire.apis import API_NAMES
from kafkacompat.wire.headers import FETCH_KEY

SERVED = {**HANDLERS, **INTER_BROKER_HANDLERS}
ASKED_ELSEWHERE = {38, *INTER_BROKER_HANDLERS}
"""Delegation tokens need SASL, and KRaft has no orders between brokers."""


@pytest.mark.parametrize("api_key", sorted(SERVED), ids=API_NAMES.get)
def test_every_served_api_has_its_rights(api_key: int) -> None:
    assert (api_key in TABLE) + (api_key in FREE) + (api_key == FETCH_KEY) == 1


@pytest.mark.parametrize("api_key", sorted(TABLE.keys() - ASKED_ELSEWHERE), ids=API_NAMES.get)
def test_kafka_is_asked_about_every_right(api_key: int) -> None:
    asked = {right for question in QUESTIONS if question.api_key == api_key for right in question.rights}
    assert {(check.operation, check.kind) for check in TABLE[api_key].checks} <= asked


def test_kafka_is_asked_about_fetches() -> None:
    asked = {right for question in QUESTIONS if question.api_key == FETCH_KEY for right in question.rights}
    assert {(check.operation, check.kind) for check in FETCH_CHECKS} == asked


def test_an_api_without_a_row_is_no_way_in() -> None:
    authorizer = Authorizer(lambda: NO_ACLS)
    with pytest.raises(KeyError):
        guard_handlers({99: HANDLERS[0]}, authorizer)
    guarded = guard_handlers(SERVED, authorizer)
    assert guarded.keys() == SERVED.keys()
    assert [key for key in SERVED if guarded[key] is SERVED[key]] == [
        key for key in SERVED if key in FREE or key == FETCH_KEY
    ]


def test_no_quota_of_clients_delays_requests_between_brokers() -> None:
    between_brokers = {key for key, row in TABLE.items() if set(row.checks) == {rights.ACT_FOR_CLUSTER}}
    assert between_brokers and between_brokers <= EXEMPT_APIS
