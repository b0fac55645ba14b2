"""The states of a classic group, as tables.

Rule 1. A group is in one of five states. *Empty*: it has no members, but may have committed offsets. *PreparingRebalance*: it
waits for its members to join the next generation. *CompletingRebalance*: the generation has started, and the group waits for the
leader's assignment. *Stable*: every member can receive its assignment. *Dead*: the group was deleted, or this broker no longer
coordinates it. No state follows Dead.

Rule 2. Only the five events below change the state, and only as `TRANSITIONS` says. An event that is not listed for a state is a
programming error.

Rule 3. The generation grows by one exactly when the joining phase ends (JOINED or DESERTED). A request that names another
generation is rejected before its state is checked.

Rule 4. The state alone decides how Heartbeat, SyncGroup and OffsetCommit of a valid member are answered: see `ON_HEARTBEAT`,
`ON_SYNC` and `ON_COMMIT`. Heartbeats are accepted while the group waits for the assignment (KAFKA-9752). Commits are accepted
while members join, so that a consumer can commit before it gives up partitions. They are rejected between JoinGroup and
SyncGroup, when a consumer's offsets are those of an older generation.

Rule 5. A member that rejoins starts a rebalance, or receives its current generation again: see `REJOIN`.

The first rebalance of an Empty group ends by time alone (group.initial.rebalance.delay.ms). Every other rebalance ends when all
known members have joined, or by time.
"""

from __future__ import annotations

from enum import Enum, auto

from kafkacompat.wire.errors import ErrorCode


class GroupState(Enum):
    """A group's state; the value is the name that clients receive."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupEvent(Enum):
    """The events that change the state of a group."""

    CHANGED = auto()  # a member joined, left or changed its protocols
    JOINED = auto()  # the joining phase ended with members
    DESERTED = auto()  # the joining phase ended without members
    ASSIGNED = auto()  # the leader's assignment is in the log
    REMOVED = auto()  # the group was deleted or handed over


class RejoinEffect(Enum):
    """The effect of a JoinGroup of a known member."""

    REBALANCE = auto()
    ANSWER = auto()  # the member receives its current generation


EMPTY = GroupState.EMPTY
PREPARING_REBALANCE = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE = GroupState.COMPLETING_REBALANCE
STABLE = GroupState.STABLE
DEAD = GroupState.DEAD

TRANSITIONS: dict[GroupState, dict[GroupEvent, GroupState]] = {
    EMPTY: {
        GroupEvent.CHANGED: PREPARING_REBALANCE,
        GroupEvent.REMOVED: DEAD,
    },
    PREPARING_REBALANCE: {
        GroupEvent.JOINED: COMPLETING_REBALANCE,
        GroupEvent.DESERTED: EMPTY,
        GroupEvent.REMOVED: DEAD,
    },
    COMPLETING_REBALANCE: {
        GroupEvent.CHANGED: PREPARING_REBALANCE,
        GroupEvent.ASSIGNED: STABLE,
        GroupEvent.REMOVED: DEAD,
    },
    STABLE: {
        GroupEvent.CHANGED: PREPARING_REBALANCE,
        GroupEvent.REMOVED: DEAD,
    },
    DEAD: {},
}

ON_HEARTBEAT: dict[GroupState, ErrorCode] = {
    EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    COMPLETING_REBALANCE: ErrorCode.NONE,
    STABLE: ErrorCode.NONE,
    DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

ON_SYNC: dict[GroupState, ErrorCode] = {
    EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    COMPLETING_REBALANCE: ErrorCode.NONE,
    STABLE: ErrorCode.NONE,
    DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

ON_COMMIT: dict[GroupState, ErrorCode] = {
    EMPTY: ErrorCode.NONE,
    PREPARING_REBALANCE: ErrorCode.NONE,
    COMPLETING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    STABLE: ErrorCode.NONE,
    DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

# By state: (is it the leader?, has it changed its protocols?) -> effect
REJOIN: dict[GroupState, dict[tuple[bool, bool], RejoinEffect]] = {
    PREPARING_REBALANCE: dict.fromkeys(
        [(False, False), (False, True), (True, False), (True, True)], RejoinEffect.REBALANCE
    ),
    COMPLETING_REBALANCE: {
        # Without a change, the response to its JoinGroup was probably lost.
        (False, False): RejoinEffect.ANSWER,
        (True, False): RejoinEffect.ANSWER,
        (False, True): RejoinEffect.REBALANCE,
        (True, True): RejoinEffect.REBALANCE,
    },
    STABLE: {
        (False, False): RejoinEffect.ANSWER,
        # A leader rejoins for a reason that its metadata does not show, such as a new partition.
        (True, False): RejoinEffect.REBALANCE,
        (False, True): RejoinEffect.REBALANCE,
        (True, True): RejoinEffect.REBALANCE,
    },
}


def next_state(state: GroupState, event: GroupEvent) -> GroupState:
    """Return the state after *event*; raises ValueError if the table has no such transition."""
    following = TRANSITIONS[state].get(event)
    if following is None:
        raise ValueError(f"a group in state {state.value} cannot take the event {event.name}")
    return following
