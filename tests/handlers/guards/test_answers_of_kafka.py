"""Every right of every API: this broker answers what Apache Kafka 4.3.1 has answered (`compat_tests/test_authorization.py`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat_tests.authorization.asking import Examination, list_scenarios
from compat_tests.authorization.differences import find_reason
from tests.handlers.guards.world import GuardedWorld

KAFKA: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "compat_tests" / "authorization" / "kafka-4.3.1.json").read_text()
)
LABELS = [scenario.label for scenario in list_scenarios()]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    world = GuardedWorld(tmp_path_factory.mktemp("world"), allow_everyone_if_no_acl_found="true")
    examination = Examination(world.ask, world.turn_until)
    examination.prepare()
    given = dict(examination.ask_everything())
    world.close()
    return given


def test_kafka_has_answered_every_question() -> None:
    assert set(LABELS) == KAFKA.keys()


@pytest.mark.parametrize("label", LABELS)
def test_the_answer_is_kafkas(answers: dict[str, Any], label: str) -> None:
    if find_reason(label) is None:
        assert answers[label] == KAFKA[label]
    else:
        # What is refused and what is not is the same for a difference, too.
        assert ("error_code" in str(answers[label])) == ("error_code" in str(KAFKA[label]))


def test_a_right_that_is_not_asked_for_would_be_noticed(answers: dict[str, Any]) -> None:
    """For each question the answer with all rights differs from that with none."""
    same = {
        scenario.question.name
        for scenario in list_scenarios()
        if scenario.label.endswith(": all")
        and answers[scenario.label] == answers[scenario.label.removesuffix("all") + "nothing"]
    }
    assert {name for name in same if "hidden" not in name} == {"produce-in-no-transaction"}
