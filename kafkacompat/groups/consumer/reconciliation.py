"""Moving a member from its assignment to its target, heartbeat by heartbeat (KIP-848).

Rule 1. A member is in one of three states. *Stable*: its assignment is the target of its epoch. *Unrevoked*: it has to give up
partitions within its rebalance timeout, and stays in its epoch until it reports that it has. *Unreleased*: it is in the new epoch,
and has its target except for partitions that other members have not given up yet.

Rule 2. `STEPS` says what a heartbeat does, by the state and by two questions: may the member advance, and does this heartbeat
change its subscription?

Rule 3. No two members have the same partition. A partition is not assigned while another member has it, or has not confirmed yet
that it gave it up.

Rule 4. A member that is no longer subscribed to a topic loses the topic's partitions at once, whatever its target is.

A log of a newer Kafka may have a fourth state. A member in that state is fenced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from kafkacompat.groups.consumer.member import Assignment, ConsumerMember, Holding, MemberState
from kafkacompat.wire.errors import ErrorCode, KafkaError

OwnedPartitions: TypeAlias = "Mapping[bytes, frozenset[int]] | None"
"""The partitions that a member reports to own; None if it reports none because nothing changed."""


class ReconciliationStep(Enum):
    """The effect of a heartbeat on the member that sends it."""

    KEEP = auto()
    SHRINK = auto()  # lose the partitions of topics that it is no longer subscribed to
    ADVANCE = auto()  # move towards the target, as far as other members have given up partitions
    FENCE = auto()  # give up everything and rejoin


STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS

# By state: (may it advance?, has its subscription changed?) -> step
STEPS: dict[MemberState, dict[tuple[bool, bool], ReconciliationStep]] = {
    STABLE: {
        (False, False): ReconciliationStep.KEEP,
        (False, True): ReconciliationStep.SHRINK,
        (True, False): ReconciliationStep.ADVANCE,
        (True, True): ReconciliationStep.ADVANCE,
    },
    UNREVOKED: {
        (False, False): ReconciliationStep.KEEP,
        (False, True): ReconciliationStep.SHRINK,
        (True, False): ReconciliationStep.ADVANCE,
        (True, True): ReconciliationStep.ADVANCE,
    },
    UNRELEASED: dict.fromkeys([(False, False), (False, True), (True, False), (True, True)], ReconciliationStep.ADVANCE),
    MemberState.UNKNOWN: {
        (False, False): ReconciliationStep.FENCE,
        (False, True): ReconciliationStep.FENCE,
        (True, False): ReconciliationStep.ADVANCE,
        (True, True): ReconciliationStep.ADVANCE,
    },
}


class MemberTarget(NamedTuple):
    """The target of a member: those of ``partitions`` whose topic it ``is_subscribed`` to.

    ``owner`` returns the id of the member that has a partition, None if the partition is free.
    """

    epoch: int
    partitions: Assignment
    is_subscribed: Callable[[bytes], bool]
    owner: Callable[[bytes, int], str | None]


def reconcile_member(
    member: ConsumerMember, target: MemberTarget, owned: OwnedPartitions, *, has_new_subscription: bool
) -> ConsumerMember:
    """Return the member after a heartbeat, the same object if nothing changes. Raises KafkaError: FENCED_MEMBER_EPOCH."""
    may_advance = _may_advance(member, target.epoch, owned)
    step = STEPS[member.state][may_advance, has_new_subscription]
    if step is ReconciliationStep.FENCE:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "the member is in a state of a newer Kafka: give up all partitions and rejoin",
        )
    if step is ReconciliationStep.ADVANCE:
        return _advance_member(member, target, owned)
    return _shrink_member(member, target, owned) if step is ReconciliationStep.SHRINK else member


def _may_advance(member: ConsumerMember, target_epoch: int, owned: OwnedPartitions) -> bool:
    if member.state is STABLE:
        return member.member_epoch != target_epoch
    if member.state is UNREVOKED:
        return not _still_owns_any(owned, member.pending_revocation)
    return member.state is UNRELEASED or owned == {}


def _still_owns_any(owned: OwnedPartitions, revoked: Holding) -> bool:
    """Return whether the member owns a partition that it has to give up. A member that reports nothing may own all of them."""
    if owned is None:
        return True
    return any(
        partition in revoked.get(topic_id, {}) for topic_id, partitions in owned.items() for partition in partitions
    )


def _advance_member(member: ConsumerMember, target: MemberTarget, owned: OwnedPartitions) -> ConsumerMember:
    wanted = {
        topic_id: partitions for topic_id, partitions in target.partitions.items() if target.is_subscribed(topic_id)
    }
    kept, lost = _split_holding(member.assigned, wanted)
    if lost and _still_owns_any(owned, lost):
        return _move_member(member, UNREVOKED, member.member_epoch, kept, lost)
    free, has_all = _find_free(member, wanted, target)
    state = STABLE if has_all else UNRELEASED
    epoch = target.epoch
    return _move_member(member, state, epoch, _join_holdings(kept, free, epoch), {})


def _split_holding(holding: Holding, wanted: Assignment) -> tuple[Holding, Holding]:
    """Return the part of *holding* that is wanted, and the part that is not."""
    kept: dict[bytes, dict[int, int]] = {}
    lost: dict[bytes, dict[int, int]] = {}
    for topic_id, epochs in holding.items():
        partitions = wanted.get(topic_id, frozenset())
        for part, is_wanted in ((kept, True), (lost, False)):
            chosen = {partition: epoch for partition, epoch in epochs.items() if (partition in partitions) is is_wanted}
            if chosen:
                part[topic_id] = chosen
    return kept, lost


def _find_free(member: ConsumerMember, wanted: Assignment, target: MemberTarget) -> tuple[dict[bytes, list[int]], bool]:
    """Return the wanted partitions that can be assigned now in addition, and whether these complete the target."""
    free: dict[bytes, list[int]] = {}
    has_all = True
    for topic_id, partitions in wanted.items():
        assigned = member.assigned.get(topic_id, {})
        for partition in partitions:
            if partition in assigned:
                continue
            # The member may keep a partition that it had to give up itself: no other member got it.
            if target.owner(topic_id, partition) in (None, member.member_id):
                free.setdefault(topic_id, []).append(partition)
            else:
                has_all = False
    return free, has_all


def _join_holdings(kept: Holding, free: Mapping[bytes, list[int]], epoch: int) -> Holding:
    return {
        topic_id: {**kept.get(topic_id, {}), **dict.fromkeys(free.get(topic_id, ()), epoch)}
        for topic_id in (*kept, *(topic_id for topic_id in free if topic_id not in kept))
    }


def _shrink_member(member: ConsumerMember, target: MemberTarget, owned: OwnedPartitions) -> ConsumerMember:
    kept = {topic_id: epochs for topic_id, epochs in member.assigned.items() if target.is_subscribed(topic_id)}
    if len(kept) == len(member.assigned):
        return member
    lost = dict(member.pending_revocation)
    for topic_id in member.assigned.keys() - kept.keys():
        lost[topic_id] = {**lost.get(topic_id, {}), **member.assigned[topic_id]}
    if _still_owns_any(owned, lost):
        return _move_member(member, UNREVOKED, member.member_epoch, kept, lost)
    return replace(member, previous_member_epoch=member.member_epoch, assigned=kept)


def _move_member(
    member: ConsumerMember, state: MemberState, epoch: int, assigned: Holding, pending_revocation: Holding
) -> ConsumerMember:
    moved = replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )
    return member if moved == member else moved
