"""What a cell of the table says without the client being tried, and what it may not claim."""

from __future__ import annotations

import pytest

from compat_tests.matrix.programme import (
    ALWAYS,
    FAILED,
    NEEDED_APIS,
    NOT_APPLICABLE,
    NOT_SERVED,
    OK,
    PLAIN,
    STEPS,
    USED_APIS,
    Cell,
    WrongAnswerError,
    explain_failure,
    find_foregone,
    refuse_unasked,
)
from compat_tests.matrix.recording import Recording

EVERYTHING = frozenset(NEEDED_APIS.values())
FEATURES = frozenset(STEPS) - ALWAYS


@pytest.mark.parametrize("step", NEEDED_APIS)
def test_a_step_of_an_unserved_api_is_not_tried(step: str) -> None:
    assert find_foregone(step, FEATURES, EVERYTHING - {NEEDED_APIS[step]}, {}) == Cell(NOT_SERVED)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_a_served_api_is_tried(step: str) -> None:
    assert find_foregone(step, FEATURES, EVERYTHING, {PLAIN: Cell(OK)}) is None


@pytest.mark.parametrize("step", NEEDED_APIS)
def test_a_feature_that_the_client_lacks_is_not_applicable(step: str) -> None:
    assert find_foregone(step, frozenset(), frozenset(), {}) == Cell(NOT_APPLICABLE)


@pytest.mark.parametrize("step", sorted(ALWAYS))
def test_a_step_of_every_client_is_always_tried(step: str) -> None:
    assert find_foregone(step, frozenset(), frozenset(), {}) is None


def test_nothing_is_tried_after_plain_records_failed() -> None:
    cell = find_foregone("gzip", FEATURES, EVERYTHING, {PLAIN: Cell(FAILED, "refused")})
    assert cell is not None
    assert cell.outcome == FAILED


@pytest.mark.parametrize("step", USED_APIS)
def test_a_feature_that_was_not_used_on_the_wire_is_not_claimed(step: str) -> None:
    recording = Recording()
    with pytest.raises(WrongAnswerError, match="the client never sent "):
        refuse_unasked(step, recording)
    recording.request(USED_APIS[step], 0)
    refuse_unasked(step, recording)


def test_other_steps_need_no_api_of_their_own() -> None:
    refuse_unasked(PLAIN, Recording())


def test_a_failure_names_the_last_exchange_beside_the_clients_words() -> None:
    recording = Recording()
    assert explain_failure(WrongAnswerError("refused"), recording) == "refused"
    recording.note("Produce v0: connection closed")
    explanation = explain_failure(WrongAnswerError("x" * 1000), recording)
    assert explanation.endswith("xxx... [Produce v0: connection closed]")
    assert len(explanation) < 300
