"""The life of a classic consumer group, as tables.

Rule 1. A group is in one of five states. *Empty*: no members (it may still hold committed offsets).
*PreparingRebalance*: waiting for its members to join the next generation. *CompletingRebalance*: the
generation has begun, its leader owes the assignment. *Stable*: every member can have its assignment.
*Dead*: deleted, or no longer ours; nothing leads out of it.

Rule 2. Only the five events below change the state, and only as `TRANSITIONS` says; an event that is not
listed for a state is a programming error.

Rule 3. The generation grows by one exactly when the joining phase ends (JOINED or DESERTED), never
otherwise. A request that names another generation is refused before its state is looked at.

Rule 4. Heartbeats, syncs and commits of a rightful member are answered by state alone: see `ON_HEARTBEAT`,
`ON_SYNC` and `ON_COMMIT`. Heartbeats are welcome while the assignment is awaited (KAFKA-9752); commits are
welcome while members join, so that a consumer can store its progress before it gives up partitions, but
not between join and sync, when its progress is of an older generation.

Rule 5. A member that joins again starts a rebalance, or is told the generation it is in: see `REJOIN`.

The first rebalance of an Empty group ends by time alone (group.initial.rebalance.delay.ms); every other
one ends when all known members have joined, or by time.
"""

from __future__ import annotations

from enum import Enum, auto

from kafkacompat.wire.errors import ErrorCode


class GroupState(Enum):
    """A group's state; the value is the name that clients are told."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Event(Enum):
    """What can happen to a group."""

    CHANGED = auto()  # a member came, went or changed what it supports
    JOINED = auto()  # the joining phase ended with members
    DESERTED = auto()  # the joining phase ended without members
    ASSIGNED = auto()  # the leader's assignment is in the log
    REMOVED = auto()  # the group was deleted or handed over


class Rejoin(Enum):
    """What a known member's JoinGroup does."""

    REBALANCE = auto()
    ANSWER = auto()  # it is told the current generation


EMPTY = GroupState.EMPTY
PREPARING_REBALANCE = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE = GroupState.COMPLETING_REBALANCE
STABLE = GroupState.STABLE
DEAD = GroupState.DEAD

TRANSITIONS: dict[GroupState, dict[Event, GroupState]] = {
    EMPTY: {
        Event.CHANGED: PREPARING_REBALANCE,
        Event.REMOVED: DEAD,
    },
    PREPARING_REBALANCE: {
        Event.JOINED: COMPLETING_REBALANCE,
        Event.DESERTED: EMPTY,
        Event.REMOVED: DEAD,
    },
    COMPLETING_REBALANCE: {
        Event.CHANGED: PREPARING_REBALANCE,
        Event.ASSIGNED: STABLE,
        Event.REMOVED: DEAD,
    },
    STABLE: {
        Event.CHANGED: PREPARING_REBALANCE,
        Event.REMOVED: DEAD,
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

# Of the states in which there are members: (is it the leader?, has it changed what it supports?) -> what happens
REJOIN: dict[GroupState, dict[tuple[bool, bool], Rejoin]] = {
    PREPARING_REBALANCE: dict.fromkeys([(False, False), (False, True), (True, False), (True, True)], Rejoin.REBALANCE),
    COMPLETING_REBALANCE: {
        # Unchanged: its first answer was probably lost.
        (False, False): Rejoin.ANSWER,
        (True, False): Rejoin.ANSWER,
        (False, True): Rejoin.REBALANCE,
        (True, True): Rejoin.REBALANCE,
    },
    STABLE: {
        (False, False): Rejoin.ANSWER,
        # A leader that joins again saw something its metadata does not show, such as a new partition.
        (True, False): Rejoin.REBALANCE,
        (False, True): Rejoin.REBALANCE,
        (True, True): Rejoin.REBALANCE,
    },
}


def next_state(state: GroupState, event: Event) -> GroupState:
    """Return the state that *event* leads to; raises ValueError when the table has no such step."""
    following = TRANSITIONS[state].get(event)
    if following is None:
        raise ValueError(f"a group in state {state.value} cannot take the event {event.name}")
    return following
