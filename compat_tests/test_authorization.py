"""Every right that an API asks for: Apache Kafka 4.3.1 and this broker answer the same, with and without the right.

``KAFKA_ANSWERS`` keeps what Kafka said; `tests/handlers/guards/test_answers_of_kafka.py` compares this broker with it without a JVM.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.authorization.asking import Examination, list_scenarios
from compat_tests.authorization.differences import find_reason
from compat_tests.brokers import Broker, KafkaBroker, KafkacompatBroker
from compat_tests.raw_client import ClosedError, RawClient
from compat_tests.waiting import until
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.schema import Request

pytestmark = pytest.mark.compare

KAFKA_ANSWERS = Path(__file__).parent / "authorization" / "kafka-4.3.1.json"

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Until there are rules, so that the first client can make them.
    "allow.everyone.if.no.acl.found": "true",
    "controller.quorum.append.linger.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}

LABELS = [scenario.label for scenario in list_scenarios()]


def examine(broker: Broker) -> dict[str, Any]:
    """Return every answer of one broker."""

    def ask(address: str, request: Request, version: int) -> Any:
        with RawClient(broker.port, address=address) as client:
            try:
                return client.call(request, find_api(request.API_KEY).response, version)
            except ClosedError:
                return None

    examination = Examination(ask, until)
    examination.prepare()
    return dict(examination.ask_everything())


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("authorization")
    with KafkaBroker(folder / "kafka", PROPERTIES) as kafka:
        theirs = examine(kafka)
    with KafkacompatBroker(folder / "ours", PROPERTIES) as ours:
        own = examine(ours)
    if os.environ.get("KEEP_ANSWERS"):
        KAFKA_ANSWERS.write_text(json.dumps(theirs, indent=1, sort_keys=True) + "\n")
    yield theirs, own


@pytest.mark.parametrize("label", LABELS)
def test_answers_are_the_same(answers: tuple[dict[str, Any], dict[str, Any]], label: str) -> None:
    kafka, ours = answers
    if find_reason(label) is None:
        assert ours[label] == kafka[label]


def test_the_kept_answers_are_kafkas(answers: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert json.loads(KAFKA_ANSWERS.read_text()) == json.loads(json.dumps(answers[0]))
