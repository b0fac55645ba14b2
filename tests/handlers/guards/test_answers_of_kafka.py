"""Every right of every API: this broker answers as Apache Kafka 4.3.1 has answered (`compat_tests/test_authorization.py`).

The guards ask for the rights in the table, and for no others.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat_tests.authorization.asking import Examination, list_scenarios
from compat_tests.authorization.differences import find_reason
from compat_tests.authorization.questions import QUESTIONS, Right
from kafkacompat.handlers import guards
from kafkacompat.handlers.guards.access import Access
from kafkacompat.handlers.guards.table import TABLE
from kafkacompat.wire.apis import API_NAMES
from tests.handlers.guards.world import GuardedWorld

KAFKA: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "compat_tests" / "authorization" / "kafka-4.3.1.json").read_text()
)
LABELS = [scenario.label for scenario in list_scenarios()]
ASKED_APIS = sorted(TABLE.keys() & {question.api_key for question in QUESTIONS})


class Examined(NamedTuple):
    """The answers by label, and the rights that the guards asked for by API key."""

    answers: dict[str, Any]
    rights: dict[int, set[Right]]


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Examined:
    rights: dict[int, set[Right]] = defaultdict(set)

    class RecordingAccess(Access):
        def may(self, operation: Any, kind: Any, name: str, **options: Any) -> bool:
            rights[self._api_key].add((operation, kind))
            return super().may(operation, kind, name, **options)

        def may_on_any(self, operation: Any, kind: Any) -> bool:
            rights[self._api_key].add((operation, kind))
            return super().may_on_any(operation, kind)

    world = GuardedWorld(tmp_path_factory.mktemp("world"), allow_everyone_if_no_acl_found="true")
    examination = Examination(world.ask, world.turn_until)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guards, "Access", RecordingAccess)
        examination.prepare()
        answers = dict(examination.ask_everything())
    world.close()
    return Examined(answers, rights)


@pytest.fixture
def answers(examined: Examined) -> dict[str, Any]:
    return examined.answers


def test_kafka_has_answered_every_question() -> None:
    assert set(LABELS) == KAFKA.keys()


@pytest.mark.parametrize("label", LABELS)
def test_the_answer_is_kafkas(answers: dict[str, Any], label: str) -> None:
    if find_reason(label) is None:
        assert answers[label] == KAFKA[label]
    else:
        # What is refused and what is not is the same for a difference, too.
        assert ("error_code" in str(answers[label])) == ("error_code" in str(KAFKA[label]))


@pytest.mark.parametrize("api_key", ASKED_APIS, ids=API_NAMES.get)
def test_guards_ask_for_the_rights_in_the_table(examined: Examined, api_key: int) -> None:
    assert examined.rights[api_key] == {(check.operation, check.kind) for check in TABLE[api_key].checks}


def test_a_right_that_is_not_asked_for_would_be_noticed(answers: dict[str, Any]) -> None:
    """For each question the answer with all rights differs from that with none."""
    same = {
        scenario.question.name
        for scenario in list_scenarios()
        if scenario.label.endswith(": all")
        and answers[scenario.label] == answers[scenario.label.removesuffix("all") + "nothing"]
    }
    assert {name for name in same if "hidden" not in name} == {"produce-in-no-transaction"}
