"""The tables of states agree with Kafka's, for every state and every event."""

from __future__ import annotations

import pytest

from kafkacompat.transactions.state import (
    BETWEEN_TRANSACTIONS,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    COMPLETION,
    DEAD,
    EMPTY,
    NAMES,
    ON_END,
    ONGOING,
    PREDECESSORS,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
    EndEffect,
    Ending,
    TransactionState,
    check_transition,
)

# From (row) to (column), in the order of the states' numbers; x marks a valid change.
MAY_BECOME = """
        Empty Ongoing PrepareCommit PrepareAbort CompleteCommit CompleteAbort Dead PrepareEpochFence
Empty               x x . x . . x .
Ongoing             . x x x . . . x
PrepareCommit       . . . . x . . .
PrepareAbort        . . . . . x . .
CompleteCommit      x x . x . . x .
CompleteAbort       x x . x . . x .
Dead                . . . . . . . .
PrepareEpochFence   . . . x . . . .
"""


def test_states_have_kafkas_numbers_and_names() -> None:
    assert [NAMES[TransactionState(number)] for number in range(8)] == MAY_BECOME.split()[:8]


def test_the_state_table_equals_kafkas() -> None:
    rows = {row.split()[0]: row.split()[1:] for row in MAY_BECOME.strip().splitlines()[1:]}
    for old in TransactionState:
        for new, mark in zip(TransactionState, rows[NAMES[old]], strict=True):
            assert (old in PREDECESSORS[new]) == (mark == "x"), (old, new)
            if mark == "x":
                check_transition(old, new)
            else:
                with pytest.raises(ValueError, match=f"{NAMES[old]} cannot become {NAMES[new]}"):
                    check_transition(old, new)


def test_only_decided_states_are_completed() -> None:
    assert COMPLETION == {PREPARE_COMMIT: COMPLETE_COMMIT, PREPARE_ABORT: COMPLETE_ABORT}
    assert {EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT} == BETWEEN_TRANSACTIONS
    assert not BETWEEN_TRANSACTIONS & {ONGOING, DEAD, PREPARE_EPOCH_FENCE, *COMPLETION}


# The effect of EndTxn: commit, repeated commit, abort, repeated abort. P prepares, A answers, R refuses, . fences.
END = {
    (False, EMPTY): "R.R.",
    (False, ONGOING): "P.P.",
    (False, COMPLETE_COMMIT): "A.R.",
    (False, COMPLETE_ABORT): "R.A.",
    (True, EMPTY): "R.P.",
    (True, ONGOING): "P.P.",
    (True, COMPLETE_COMMIT): "RAPR",
    (True, COMPLETE_ABORT): "RRPA",
}


@pytest.mark.parametrize("case", END, ids=str)
def test_every_end_of_every_state(case: tuple[bool, TransactionState]) -> None:
    letters = {EndEffect.PREPARE: "P", EndEffect.ANSWER: "A", EndEffect.REFUSE: "R", None: "."}
    asked = [(ending, repeat) for ending in (Ending.COMMIT, Ending.ABORT) for repeat in (False, True)]
    assert "".join(letters[ON_END[case].get(request)] for request in asked) == END[case]


def test_every_prepared_state_is_a_legal_transition() -> None:
    for (_, state), answers in ON_END.items():
        for (ending, _), answer in answers.items():
            if answer is EndEffect.PREPARE:
                check_transition(state, ending.value)
