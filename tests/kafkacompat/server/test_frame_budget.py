"""Who may read when the frames of all connections together are too much."""

from __future__ import annotations

import pytest

from kafkacompat.server.frame_budget import FAIR_SHARE_BYTES, STALLED_MS, FrameBudget

LIMIT = 10 * FAIR_SHARE_BYTES


class Holder:
    def __init__(self) -> None:
        self.held_bytes = 0
        self.last_received_ms = 0
        self.is_receiving = True
        self.is_muted = False
        self.paused = False
        self.reason = ""

    def pause_for_memory(self) -> None:
        self.paused = True

    def resume_for_memory(self) -> None:
        self.paused = False

    def cut_off(self, reason: str) -> None:
        self.reason = reason


class World:
    def __init__(self) -> None:
        self.now_ms = 0
        self.budget = FrameBudget(LIMIT, lambda: self.now_ms)


def test_under_the_limit_no_connection_pauses() -> None:
    world, holder = World(), Holder()
    world.budget.update_held_bytes(holder, LIMIT)
    assert not holder.paused


def test_beyond_it_only_the_oldest_large_frame_goes_on() -> None:
    world, old, young, small = World(), Holder(), Holder(), Holder()
    world.budget.update_held_bytes(old, LIMIT // 2)
    world.budget.update_held_bytes(small, FAIR_SHARE_BYTES)
    world.budget.update_held_bytes(young, LIMIT)
    assert (old.paused, young.paused, small.paused) == (False, True, False)
    world.budget.update_held_bytes(small, FAIR_SHARE_BYTES // 2)
    assert not small.paused


def test_when_the_oldest_is_done_the_next_oldest_goes_on() -> None:
    world, holders = World(), [Holder() for _ in range(3)]
    for holder in holders:
        world.budget.update_held_bytes(holder, LIMIT)
    assert [holder.paused for holder in holders] == [False, True, True]
    world.budget.update_held_bytes(holders[0], 0)
    assert [holder.paused for holder in holders] == [False, False, True]


def test_with_memory_back_all_go_on() -> None:
    world, first, second = World(), Holder(), Holder()
    world.budget.update_held_bytes(first, LIMIT // 2)
    world.budget.update_held_bytes(second, LIMIT)
    assert second.paused
    world.budget.update_held_bytes(first, 0)
    assert not second.paused
    assert world.budget.held_bytes == LIMIT


def test_back_within_its_fair_share_a_holder_goes_on_although_memory_is_short() -> None:
    world, old, young = World(), Holder(), Holder()
    world.budget.update_held_bytes(old, LIMIT)
    world.budget.update_held_bytes(young, LIMIT)
    assert young.paused
    world.budget.update_held_bytes(old, LIMIT + 1)
    world.budget.update_held_bytes(young, FAIR_SHARE_BYTES)
    assert world.budget.held_bytes > world.budget.limit_bytes
    assert not young.paused


@pytest.mark.parametrize("limit", [-1, 0])
def test_a_limit_that_is_not_positive_is_none(limit: int) -> None:
    holders = [Holder(), Holder()]
    budget = FrameBudget(limit, lambda: 0)
    for holder in holders:
        budget.update_held_bytes(holder, LIMIT * 100)
    assert not any(holder.paused for holder in holders)


def test_a_stalled_oldest_frame_is_cut_off_only_when_it_holds_up_others() -> None:
    world, first, second = World(), Holder(), Holder()
    world.budget.update_held_bytes(first, LIMIT * 2)
    world.now_ms = STALLED_MS
    world.budget.check_stalled()
    assert first.reason == ""
    world.budget.update_held_bytes(second, LIMIT)
    first.is_receiving = False
    world.budget.check_stalled()
    assert first.reason == ""
    first.is_receiving = True
    world.budget.check_stalled()
    assert "memory" in first.reason


def test_a_muted_connection_does_not_hold_up_the_others() -> None:
    world, holders = World(), [Holder() for _ in range(3)]
    for holder in holders:
        world.budget.update_held_bytes(holder, LIMIT)
    holders[0].is_muted = True
    world.budget.choose_again()
    assert [holder.paused for holder in holders] == [True, False, True]
    holders[0].is_muted = False
    world.budget.choose_again()
    # The one that has read on meanwhile stops.
    assert [holder.paused for holder in holders] == [False, True, True]


def test_a_muted_connection_is_closed_while_others_wait_for_its_memory() -> None:
    world, muted, other = World(), Holder(), Holder()
    world.budget.update_held_bytes(muted, LIMIT)
    muted.is_muted = True
    world.budget.check_stalled()
    assert not muted.reason
    for holder in (other, Holder()):
        world.budget.update_held_bytes(holder, LIMIT)
    world.budget.check_stalled()
    assert "is throttled" in muted.reason
    assert not other.reason


def test_with_all_muted_the_first_that_is_not_goes_on() -> None:
    world, holders = World(), [Holder() for _ in range(2)]
    for holder in holders:
        holder.is_muted = True
        world.budget.update_held_bytes(holder, LIMIT)
    assert all(holder.paused for holder in holders)
    holders[1].is_muted = False
    world.budget.choose_again()
    assert [holder.paused for holder in holders] == [True, False]
