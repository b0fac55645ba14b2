"""The service on a broker of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kafkacompat.testing import Record, RunningBroker
from orders.service import GROUP, ORDERS, PRICED, REJECTED

ANN = ("ann", '{"items": {"tea": 2}}')
BOB = ("bob", '{"items": {"scone": 1, "jam": 1}}')
TOTALS = {"ann": 700, "bob": 600}


def read_totals(records: list[Record]) -> dict[str, Any]:
    """Return the total of each customer; an order that was priced twice fails."""
    totals = {record.key.decode(): json.loads(record.value)["total"] for record in records}
    assert len(totals) == len(records)
    return totals


@pytest.mark.kafka_releases("0.11", "2.8", "3.9", "4.3")
@pytest.mark.usefixtures("service")
def test_brokers_of_every_age(kafka: RunningBroker) -> None:
    kafka.produce(ORDERS, [ANN, BOB])
    assert read_totals(kafka.records(PRICED, 2)) == TOTALS


@pytest.mark.usefixtures("service")
def test_an_order_that_cannot_be_priced_is_kept(kafka: RunningBroker) -> None:
    kafka.produce(ORDERS, [("eve", '{"items": {"coal": 1}}'), ANN])
    kafka.assert_produced(PRICED, ("ann", '{"items": {"tea": 2}, "total": 700}'), exactly=True)
    (rejected,) = kafka.records(REJECTED, 1)
    assert rejected.headers == [("reason", b"'coal' is missing in the order or has no price")]


@pytest.mark.usefixtures("service")
def test_the_service_catches_up(kafka: RunningBroker) -> None:
    kafka.produce(ORDERS, [(f"customer {number}", '{"items": {"jam": 1}}') for number in range(1000)])
    kafka.wait_for_lag(GROUP, 0)
    assert len(kafka.records(PRICED, isolation_level="read_committed")) == 1000


@pytest.mark.usefixtures("service")
def test_a_request_that_is_tried_again_doubles_nothing(kafka: RunningBroker) -> None:
    kafka.faults.add(api="Produce", topic=PRICED, error="NOT_LEADER_OR_FOLLOWER", times=2)
    kafka.faults.add(api="EndTxn", error="COORDINATOR_LOAD_IN_PROGRESS", times=1)
    kafka.produce(ORDERS, [ANN, BOB])
    assert read_totals(kafka.records(PRICED, 2, isolation_level="read_committed")) == TOTALS
    assert [rule["applied"] for rule in kafka.faults.list()] == [2, 1]


@pytest.mark.usefixtures("service")
def test_an_aborted_transaction_is_repeated(kafka: RunningBroker) -> None:
    """The broker rejects the records of one partition, so that the transaction fails although others are written."""
    kafka.faults.add(api="Produce", topic=PRICED, partition=0, error="MESSAGE_TOO_LARGE", times=1)
    kafka.produce(ORDERS, [ANN, BOB])
    assert read_totals(kafka.records(PRICED, 2, isolation_level="read_committed")) == TOTALS
    assert kafka.faults.list()[0]["applied"] == 1


def test_orders_are_kept_for_a_day(kafka: RunningBroker, start_service: Callable[[], None]) -> None:
    """A service that was down for longer starts with the orders that are left."""
    kafka.produce(ORDERS, [ANN])
    kafka.clock.advance(hours=25)
    kafka.produce(ORDERS, [BOB])
    start_service()
    assert read_totals(kafka.records(PRICED, 1)) == {"bob": 600}
