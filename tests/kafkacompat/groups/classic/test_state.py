import pytest

from kafkacompat.groups.classic.state import (
    DEAD,
    EMPTY,
    ON_COMMIT,
    ON_HEARTBEAT,
    ON_SYNC,
    PREPARING_REBALANCE,
    REJOIN,
    TRANSITIONS,
    GroupEvent,
    GroupState,
    next_state,
)

# As Kafka lists them: state -> the states that may precede it.
VALID_PREVIOUS_STATES = {
    "Empty": {"PreparingRebalance"},
    "PreparingRebalance": {"Stable", "CompletingRebalance", "Empty"},
    "CompletingRebalance": {"PreparingRebalance"},
    "Stable": {"CompletingRebalance"},
    "Dead": {"Stable", "PreparingRebalance", "CompletingRebalance", "Empty"},
}


def test_the_transitions_are_kafkas() -> None:
    reached_from: dict[str, set[str]] = {state.value: set() for state in GroupState}
    for state, steps in TRANSITIONS.items():
        for following in steps.values():
            reached_from[following.value].add(state.value)
    assert reached_from == VALID_PREVIOUS_STATES


@pytest.mark.parametrize("table", [TRANSITIONS, ON_HEARTBEAT, ON_SYNC, ON_COMMIT])
def test_every_table_knows_every_state(table: dict[GroupState, object]) -> None:
    assert set(table) == set(GroupState)


def test_rejoining_is_defined_for_every_state_with_members_and_every_situation() -> None:
    assert set(REJOIN) == set(GroupState) - {EMPTY, DEAD}
    assert all(len(situations) == 4 for situations in REJOIN.values())


def test_an_event_that_is_not_listed_is_an_error() -> None:
    assert next_state(EMPTY, GroupEvent.CHANGED) is PREPARING_REBALANCE
    with pytest.raises(ValueError, match="Empty cannot take the event ASSIGNED"):
        next_state(EMPTY, GroupEvent.ASSIGNED)
    for event in GroupEvent:
        with pytest.raises(ValueError, match="Dead"):
            next_state(DEAD, event)
