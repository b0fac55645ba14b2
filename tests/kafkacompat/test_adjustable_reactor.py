"""A reactor whose time a test advances: which calls it makes, in which order, and what it waits for."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, LoopingCall
from twisted.python.failure import Failure

from kafkacompat.adjustable_reactor import (
    EXACT_JUMPS,
    MOST_JUMPS,
    MOST_WAITING,
    OPERATIONS_TIMEOUT_S,
    POLL_S,
    AdjustableReactor,
    ClockError,
)
from kafkacompat.timers import SteadyClock, now_ms

NOW_S = 1_700_000_000.0
DAY_S = 86_400


class SteadyBase(SteadyClock, Clock):
    """A base reactor whose two times differ."""

    def time_of_day(self) -> float:
        return self.seconds() + 5


class World:
    """A reactor over a base that runs only in `turn`."""

    def __init__(self, base: Clock | None = None) -> None:
        self.base = base or Clock()
        self.base.advance(NOW_S)
        self.clock = AdjustableReactor(self.base)
        self.seen: list[tuple[str, float]] = []

    def later(self, delay_s: float, name: str) -> object:
        return self.clock.callLater(delay_s, self.note, name)

    def note(self, name: str) -> None:
        self.seen.append((name, round(self.clock.seconds() - NOW_S, 3)))

    def advance(self, duration_s: float) -> None:
        done = self.begin(duration_s)
        self.base.advance(0)
        assert done == [None]

    def begin(self, duration_s: float) -> list[object]:
        """Advance as far as the base reactor has turns; returns a list that receives the outcome."""
        outcome: list[object] = []
        self.clock.advance(duration_s).addBoth(outcome.append)
        return outcome


@pytest.fixture
def world() -> World:
    return World()


def test_delayed_calls_are_made_in_real_time_without_an_advance(world: World) -> None:
    world.later(2, "second")
    world.later(1, "first")
    world.later(0, "at once")
    assert len(world.base.getDelayedCalls()) == 1
    assert world.seen == []
    world.base.advance(0)
    world.base.advance(1)
    world.base.advance(1)
    assert world.seen == [("at once", 0), ("first", 1), ("second", 2)]
    assert world.base.getDelayedCalls() == []


def test_a_call_without_delay_is_made_in_a_later_turn(world: World) -> None:
    def call_again() -> None:
        world.later(0, "next")
        world.note("this")

    world.clock.callLater(1, call_again)
    world.later(1, "beside")
    world.base.advance(1)
    assert world.seen == [("this", 1), ("beside", 1), ("next", 1)]


def test_an_advance_makes_each_call_at_its_time_and_in_order(world: World) -> None:
    for delay_s in (3600, 1, 60):
        world.later(delay_s, f"{delay_s} s")
    world.later(3601, "later")
    world.clock.callLater(60, lambda: world.later(30, "from a call"))
    world.advance(3600)
    assert world.seen == [("1 s", 1), ("60 s", 60), ("from a call", 90), ("3600 s", 3600)]
    assert world.clock.seconds() == pytest.approx(NOW_S + 3600)
    world.base.advance(1)
    assert world.seen[-1] == ("later", 3601)


def test_periodic_work_runs_at_each_of_its_times(world: World) -> None:
    loop = LoopingCall(world.note, "tick")
    loop.clock = world.clock  # type: ignore[assignment]
    loop.start(10, now=False)
    world.advance(100)
    assert [time_s for _, time_s in world.seen] == [10.0 * number for number in range(1, 11)]
    loop.stop()
    assert world.clock.getDelayedCalls() == world.base.getDelayedCalls() == []


def test_a_day_of_a_fast_timer_costs_a_bounded_number_of_calls(world: World) -> None:
    loop = LoopingCall(world.note, "tick")
    loop.clock = world.clock  # type: ignore[assignment]
    loop.start(0.1, now=False)
    world.advance(25 * 3600)
    assert [time_s for _, time_s in world.seen[:EXACT_JUMPS]] == [
        round(0.1 * number, 3) for number in range(1, EXACT_JUMPS + 1)
    ]
    assert len(world.seen) == MOST_JUMPS
    assert world.clock.seconds() == pytest.approx(NOW_S + 25 * 3600)


EXACT_S = 0.1 * EXACT_JUMPS


def make_busy(world: World) -> None:
    """Let a timer need more jumps than an advance makes, so that each later one skips some time."""
    loop = LoopingCall(lambda: None)
    loop.clock = world.clock  # type: ignore[assignment]
    loop.start(0.1, now=False)


def test_calls_of_one_jump_take_effect_before_later_ones(world: World) -> None:
    """An answer that is due first cancels the timeout of its question, although one jump skips both."""
    make_busy(world)
    timeout = world.clock.callLater(EXACT_S + 30, world.note, "timeout")
    world.clock.callLater(EXACT_S + 1, lambda: world.clock.callLater(0, timeout.cancel))
    world.advance(100 * DAY_S)
    assert world.seen == []


def test_a_call_that_is_postponed_by_an_earlier_one_waits(world: World) -> None:
    make_busy(world)
    postponed = world.clock.callLater(EXACT_S + 30, world.note, "postponed")
    world.clock.callLater(EXACT_S + 1, postponed.reset, 200 * DAY_S)
    world.advance(100 * DAY_S)
    assert world.seen == []
    world.advance(150 * DAY_S)
    assert [name for name, _ in world.seen] == ["postponed"]


def test_calls_can_be_moved_and_cancelled(world: World) -> None:
    earlier, later, cancelled = (
        world.clock.callLater(10, world.note, name) for name in ("earlier", "later", "cancelled")
    )
    earlier.reset(5)
    later.reset(20)
    cancelled.cancel()
    assert set(world.clock.getDelayedCalls()) == {earlier, later}
    for _ in range(200):
        world.clock.callLater(1, world.note, "never").cancel()
    world.advance(30)
    assert world.seen == [("earlier", 5), ("later", 20)]


def test_a_call_that_fails_stops_neither_the_others_nor_the_advance(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.clock.callLater(1, {}.__getitem__, "missing")
    world.later(1, "beside")
    world.later(2, "after")
    world.advance(3)
    assert [name for name, _ in world.seen] == ["beside", "after"]
    assert "A delayed call failed" in caplog.text


def test_the_time_of_day_moves_with_the_clock() -> None:
    simple, steady = World(), World(SteadyBase())
    for world, offset_s in ((simple, 0), (steady, 5)):
        world.advance(DAY_S)
        assert now_ms(world.clock) == pytest.approx((NOW_S + DAY_S + offset_s) * 1000)
        assert world.clock.advanced_s == pytest.approx(DAY_S)


def test_two_clocks_share_a_base_and_nothing_else(world: World) -> None:
    other = AdjustableReactor(world.base)
    world.advance(DAY_S)
    assert other.seconds() == NOW_S
    assert other.advanced_s == 0


def test_everything_else_is_the_base_reactors(world: World) -> None:
    assert world.clock.rightNow == world.base.rightNow
    with pytest.raises(AttributeError):
        _ = world.clock.missing


class Disk:
    pending = 0


def test_an_advance_waits_for_operations_of_disks(world: World) -> None:
    disk = Disk()
    world.clock.watch(disk)
    world.clock.callLater(10, setattr, disk, "pending", 1)
    world.later(20, "after the operation")
    done = world.begin(60)
    for _ in range(5):
        world.base.advance(POLL_S)
    assert done == []
    assert world.seen == []
    disk.pending = 0
    world.base.advance(POLL_S)
    assert done == [None]
    assert [name for name, _ in world.seen] == ["after the operation"]


def test_an_operation_that_does_not_end_fails_the_advance(world: World) -> None:
    disk = Disk()
    disk.pending = 1
    world.clock.watch(disk)
    outcome = world.begin(60)
    for _ in range(3):
        world.base.advance(OPERATIONS_TIMEOUT_S / 2 + POLL_S)
    assert isinstance(outcome[0], Failure)
    assert outcome[0].check(ClockError)
    assert outcome[0].getErrorMessage() == (
        "the clock has stopped before the end of the advance: 1 operations of disks and worker processes have not ended "
        "within 60 s"
    )
    # It continues in real time.
    world.later(1, "afterwards")
    world.base.advance(1)
    assert [name for name, _ in world.seen] == ["afterwards"]


def test_an_advance_that_fails_within_a_jump_loses_no_call(world: World) -> None:
    disk = Disk()
    world.clock.watch(disk)
    for number in range(EXACT_JUMPS):
        world.clock.callLater(100 + number, lambda: None)
    world.clock.callLater(600, setattr, disk, "pending", 1)
    world.later(600.001, "in the same jump")
    outcome = world.begin(DAY_S)
    for _ in range(3):
        world.base.advance(OPERATIONS_TIMEOUT_S / 2 + POLL_S)
    assert isinstance(outcome[0], Failure)
    world.base.advance(0)
    assert [name for name, _ in world.seen] == ["in the same jump"]


def test_the_clock_forgets_operations_that_nobody_else_knows(world: World) -> None:
    disk = Disk()
    disk.pending = 1
    world.clock.watch(disk)
    del disk
    world.advance(1)


def test_advances_run_one_after_the_other(world: World) -> None:
    ended: list[float] = []
    for _ in range(2):
        world.clock.advance(60).addCallback(lambda _: ended.append(round(world.clock.advanced_s, 3)))
    world.base.advance(0)
    assert ended == [60, 120]


def test_the_number_of_waiting_advances_is_bounded(world: World) -> None:
    outcomes = [world.begin(1) for _ in range(MOST_WAITING + 1)]
    with pytest.raises(ClockError, match="100 advances of the clock wait for earlier ones"):
        world.clock.advance(1)
    world.base.advance(0)
    assert outcomes == [[None]] * (MOST_WAITING + 1)


@pytest.mark.parametrize(
    ("duration_s", "reason"),
    [
        (-1.0, "it never goes back"),
        (float("nan"), "it never goes back"),
        (float("inf"), "year 9999"),
        (1e12, "year 9999"),
    ],
)
def test_a_wrong_duration_is_refused_at_once(world: World, duration_s: float, reason: str) -> None:
    with pytest.raises(ClockError, match=reason):
        world.clock.advance(duration_s)
    assert world.clock.advanced_s == 0


def test_work_in_turns_ends_before_the_advance_does(world: World) -> None:
    finished: list[object] = []

    def work(turns: int) -> None:
        if turns:
            world.clock.callLater(0, work, turns - 1)
        else:
            finished.append(True)

    world.clock.callLater(60, work, 50)
    done: Deferred[None] = world.clock.advance(60)
    done.addCallback(lambda _: finished.append("the advance"))
    world.base.advance(0)
    assert finished == [True, "the advance"]
