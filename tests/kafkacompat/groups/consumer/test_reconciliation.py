"""Moving a member from its assignment to its target: the table, and each rule by itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product

import pytest

from kafkacompat.groups.consumer.member import ConsumerMember, MemberState
from kafkacompat.groups.consumer.reconciliation import STEPS, MemberTarget, ReconciliationStep, reconcile_member
from kafkacompat.wire.errors import ErrorCode, KafkaError

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def make_member(
    state: MemberState = STABLE, epoch: int = 5, **more: Mapping[bytes, Mapping[int, int]]
) -> ConsumerMember:
    return ConsumerMember("m", member_epoch=epoch, previous_member_epoch=epoch - 1, state=state, **more)  # type: ignore[arg-type]


def make_target(
    partitions: Mapping[bytes, set[int]],
    *,
    epoch: int = 6,
    subscribed: Collection[bytes] = (T, U),
    owners: Mapping[tuple[bytes, int], str] | None = None,
) -> MemberTarget:
    wanted = {topic_id: frozenset(some) for topic_id, some in partitions.items()}
    return MemberTarget(
        epoch, wanted, lambda topic_id: topic_id in subscribed, lambda *partition: (owners or {}).get(partition)
    )


def make_owned(partitions: Mapping[bytes, set[int]]) -> dict[bytes, frozenset[int]]:
    return {topic_id: frozenset(some) for topic_id, some in partitions.items()}


def run_step(
    before: ConsumerMember,
    to: MemberTarget,
    has: Mapping[bytes, frozenset[int]] | None = None,
    *,
    changed: bool = False,
) -> ConsumerMember:
    return reconcile_member(before, to, has, has_new_subscription=changed)


def test_the_table_has_an_answer_for_every_case() -> None:
    assert STEPS.keys() == set(MemberState)
    for row in STEPS.values():
        assert row.keys() == set(product([False, True], repeat=2))
    fencing = {state for state, row in STEPS.items() if ReconciliationStep.FENCE in row.values()}
    assert fencing == {MemberState.UNKNOWN}


def test_a_member_that_has_it_all_is_left_alone() -> None:
    before = make_member(epoch=6, assigned={T: {0: 3}})
    assert run_step(before, make_target({T: {0}})) is before


def test_free_partitions_are_assigned_with_the_new_epoch() -> None:
    after = run_step(make_member(assigned={T: {0: 3}}), make_target({T: {0, 1}, U: {0}}))
    assert (after.state, after.member_epoch, after.previous_member_epoch) == (STABLE, 6, 5)
    assert after.assigned == {T: {0: 3, 1: 6}, U: {0: 6}}


def test_a_partition_of_another_member_is_awaited() -> None:
    after = run_step(make_member(), make_target({T: {0, 1}}, owners={(T, 1): "other"}))
    assert (after.state, after.member_epoch, after.assigned) == (UNRELEASED, 6, {T: {0: 6}})
    still = run_step(after, make_target({T: {0, 1}}, owners={(T, 0): "m", (T, 1): "other"}))
    assert (still.state, still.previous_member_epoch) == (UNRELEASED, 6)
    assert run_step(still, make_target({T: {0, 1}}, owners={(T, 0): "m", (T, 1): "other"})) is still
    last = run_step(still, make_target({T: {0, 1}}, owners={(T, 0): "m"}))
    assert (last.state, last.assigned) == (STABLE, {T: {0: 6, 1: 6}})


def test_partitions_for_others_are_revoked_first() -> None:
    before = make_member(assigned={T: {0: 3, 1: 3}})
    to = make_target({T: {1, 2}})
    revoking = run_step(before, to)
    assert (revoking.state, revoking.member_epoch, revoking.assigned) == (UNREVOKED, 5, {T: {1: 3}})
    assert revoking.pending_revocation == {T: {0: 3}}
    for has in (None, make_owned({T: {0}}), make_owned({T: {0, 1}, U: {3}})):
        assert run_step(revoking, to, has) is revoking
    done = run_step(revoking, to, make_owned({T: {1}}))
    assert (done.state, done.member_epoch, done.assigned, done.pending_revocation) == (STABLE, 6, {T: {1: 3, 2: 6}}, {})


def test_a_member_that_has_given_it_up_already_is_not_asked_to() -> None:
    after = run_step(make_member(assigned={T: {0: 3, 1: 3}}), make_target({T: {1}}), make_owned({T: {1}}))
    assert (after.state, after.member_epoch, after.assigned) == (STABLE, 6, {T: {1: 3}})


def test_a_partition_to_be_revoked_may_be_assigned_again() -> None:
    before = make_member(UNREVOKED, assigned={T: {1: 3}}, pending_revocation={T: {0: 3}})
    owners = {(T, 0): "m", (T, 1): "m"}
    after = run_step(before, make_target({T: {0, 1}}, owners=owners), make_owned({T: {1}}))
    assert (after.state, after.assigned, after.pending_revocation) == (STABLE, {T: {1: 3, 0: 6}}, {})


def test_nothing_is_given_of_a_topic_that_is_not_subscribed_to_any_more() -> None:
    after = run_step(make_member(), make_target({T: {0}, U: {0}}, subscribed=[U]))
    assert after.assigned == {U: {0: 6}}


def test_a_topic_that_is_not_subscribed_to_any_more_is_given_up_at_once() -> None:
    before = make_member(epoch=6, assigned={T: {0: 3}, U: {1: 4}})
    after = run_step(before, make_target({T: {0}, U: {1}}, subscribed=[U]), changed=True)
    assert (after.state, after.member_epoch, after.previous_member_epoch) == (UNREVOKED, 6, 6)
    assert (after.assigned, after.pending_revocation) == ({U: {1: 4}}, {T: {0: 3}})


def test_one_more_topic_may_be_given_up_while_another_one_is() -> None:
    before = make_member(UNREVOKED, assigned={U: {1: 4}}, pending_revocation={T: {0: 3}})
    after = run_step(before, make_target({}, subscribed=[]), changed=True)
    assert (after.state, after.assigned, after.pending_revocation) == (UNREVOKED, {}, {T: {0: 3}, U: {1: 4}})


def test_a_member_without_partitions_to_revoke_stays_unchanged() -> None:
    before = make_member(epoch=6, assigned={T: {0: 3}, U: {1: 4}})
    after = run_step(before, make_target({T: {0}, U: {1}}, subscribed=[U]), make_owned({U: {1}}), changed=True)
    assert (after.state, after.member_epoch, after.assigned, after.pending_revocation) == (STABLE, 6, {U: {1: 4}}, {})


def test_another_subscription_to_the_same_topics_changes_nothing() -> None:
    before = make_member(epoch=6, assigned={T: {0: 3}})
    assert run_step(before, make_target({T: {0}}), changed=True) is before


@pytest.mark.parametrize("has", [None, make_owned({T: {0}})])
def test_a_state_that_is_not_known_fences(has: dict[bytes, frozenset[int]] | None) -> None:
    with pytest.raises(KafkaError) as refusal:
        run_step(make_member(MemberState.UNKNOWN), make_target({T: {0}}), has)
    assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_state_that_is_not_known_ends_when_the_member_has_nothing() -> None:
    after = run_step(make_member(MemberState.UNKNOWN), make_target({T: {0}}), {})
    assert (after.state, after.assigned) == (STABLE, {T: {0: 6}})
