"""From what a member has to what it shall have, one heartbeat after the other (KIP-848).

Rule 1. A member is in one of three states. *Stable*: it has what it shall have in its epoch. *Unrevoked*: it must
give partitions up, stays in its epoch until it says that it has, and has its rebalance timeout to do so.
*Unreleased*: it is in the new epoch, with everything but partitions that others have not given up yet.

Rule 2. What happens upon a heartbeat is in `STEPS`, by the state and by two questions: may the member advance, and
has its subscription changed with this very heartbeat?

Rule 3. A partition is never with two members: it is given to nobody while another member has it, or has yet to say
that it gave it up.

Rule 4. A member that is no longer subscribed to a topic loses its partitions at once, whatever the target says.

There is a fourth state in the log of a newer Kafka only; a member found in it starts anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from kafkacompat.groups.consumer.member import Assignment, ConsumerMember, Holding, MemberState
from kafkacompat.wire.errors import ErrorCode, KafkaError

Owned: TypeAlias = "Mapping[bytes, frozenset[int]] | None"
"""What a member says that it has; None when it says nothing, since nothing changed."""


class Step(Enum):
    """What a heartbeat does to the member that sends it."""

    KEEP = auto()
    SHRINK = auto()  # take away what it is not subscribed to any more
    ADVANCE = auto()  # as far towards the target as others let it
    FENCE = auto()  # have it start anew


STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS

# (may it advance?, has its subscription changed?) -> what happens
STEPS: dict[MemberState, dict[tuple[bool, bool], Step]] = {
    STABLE: {
        (False, False): Step.KEEP,
        (False, True): Step.SHRINK,
        (True, False): Step.ADVANCE,
        (True, True): Step.ADVANCE,
    },
    UNREVOKED: {
        (False, False): Step.KEEP,
        (False, True): Step.SHRINK,
        (True, False): Step.ADVANCE,
        (True, True): Step.ADVANCE,
    },
    UNRELEASED: dict.fromkeys([(False, False), (False, True), (True, False), (True, True)], Step.ADVANCE),
    MemberState.UNKNOWN: {
        (False, False): Step.FENCE,
        (False, True): Step.FENCE,
        (True, False): Step.ADVANCE,
        (True, True): Step.ADVANCE,
    },
}


class Target(NamedTuple):
    """What a member shall have: of ``partitions`` those of topics that it ``is_subscribed`` to.

    ``owner`` names the member that a partition is with, None when it is free.
    """

    epoch: int
    partitions: Assignment
    is_subscribed: Callable[[bytes], bool]
    owner: Callable[[bytes, int], str | None]


def reconcile(member: ConsumerMember, target: Target, owned: Owned, *, has_new_subscription: bool) -> ConsumerMember:
    """The member after a heartbeat; the very same one if nothing changes. Raises KafkaError: FENCED_MEMBER_EPOCH."""
    may_advance = _may_advance(member, target.epoch, owned)
    step = STEPS[member.state][may_advance, has_new_subscription]
    if step is Step.FENCE:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "the member is in a state that this broker does not know: it must give up all partitions and join again",
        )
    if step is Step.ADVANCE:
        return _advance(member, target, owned)
    return _shrink(member, target, owned) if step is Step.SHRINK else member


def _may_advance(member: ConsumerMember, target_epoch: int, owned: Owned) -> bool:
    if member.state is STABLE:
        return member.member_epoch != target_epoch
    if member.state is UNREVOKED:
        return not _still_has(owned, member.pending_revocation)
    return member.state is UNRELEASED or owned == {}


def _still_has(owned: Owned, given_up: Holding) -> bool:
    """Whether the member has any of what it shall give up; one that does not say may have all of it."""
    if owned is None:
        return True
    return any(partition in given_up.get(topic_id, {}) for topic_id, some in owned.items() for partition in some)


def _advance(member: ConsumerMember, target: Target, owned: Owned) -> ConsumerMember:
    wanted = {topic_id: some for topic_id, some in target.partitions.items() if target.is_subscribed(topic_id)}
    kept, lost = _split(member.assigned, wanted)
    if lost and _still_has(owned, lost):
        return _moved(member, UNREVOKED, member.member_epoch, kept, lost)
    free, has_all = _free(member, wanted, target)
    state = STABLE if has_all else UNRELEASED
    epoch = target.epoch
    return _moved(member, state, epoch, _joined(kept, free, epoch), {})


def _split(holding: Holding, wanted: Assignment) -> tuple[Holding, Holding]:
    """What of *holding* is wanted, and the rest."""
    kept: dict[bytes, dict[int, int]] = {}
    lost: dict[bytes, dict[int, int]] = {}
    for topic_id, epochs in holding.items():
        some = wanted.get(topic_id, frozenset())
        for part, is_wanted in ((kept, True), (lost, False)):
            chosen = {partition: epoch for partition, epoch in epochs.items() if (partition in some) is is_wanted}
            if chosen:
                part[topic_id] = chosen
    return kept, lost


def _free(member: ConsumerMember, wanted: Assignment, target: Target) -> tuple[dict[bytes, list[int]], bool]:
    """What of *wanted* the member can be given besides what it has, and whether that is all of it."""
    free: dict[bytes, list[int]] = {}
    has_all = True
    for topic_id, partitions in wanted.items():
        assigned = member.assigned.get(topic_id, {})
        for partition in partitions:
            if partition in assigned:
                continue
            # What this member itself was to give up, it may have again: nobody else got it.
            if target.owner(topic_id, partition) in (None, member.member_id):
                free.setdefault(topic_id, []).append(partition)
            else:
                has_all = False
    return free, has_all


def _joined(kept: Holding, free: Mapping[bytes, list[int]], epoch: int) -> Holding:
    return {
        topic_id: {**kept.get(topic_id, {}), **dict.fromkeys(free.get(topic_id, ()), epoch)}
        for topic_id in (*kept, *(topic_id for topic_id in free if topic_id not in kept))
    }


def _shrink(member: ConsumerMember, target: Target, owned: Owned) -> ConsumerMember:
    kept = {topic_id: epochs for topic_id, epochs in member.assigned.items() if target.is_subscribed(topic_id)}
    if len(kept) == len(member.assigned):
        return member
    lost = dict(member.pending_revocation)
    for topic_id in member.assigned.keys() - kept.keys():
        lost[topic_id] = {**lost.get(topic_id, {}), **member.assigned[topic_id]}
    if _still_has(owned, lost):
        return _moved(member, UNREVOKED, member.member_epoch, kept, lost)
    return replace(member, previous_member_epoch=member.member_epoch, assigned=kept)


def _moved(
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
