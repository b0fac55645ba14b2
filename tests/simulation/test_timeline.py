"""Virtual time: order, jumps, pauses, and clocks that are wrong."""

from __future__ import annotations

from tests.simulation.timeline import MachineClock, Timeline


def run(timeline: Timeline, seconds: float) -> None:
    timeline.run(timeline.now + seconds, lambda: False)


def test_a_lane_keeps_its_order_and_lanes_differ_by_seed() -> None:
    orders = set()
    for seed in range(10):
        timeline = Timeline(seed, 100)
        made: list[str] = []
        for number in range(3):
            for name in "ab":
                timeline.lane(name).callLater(1, made.append, f"{name}{number}")
        run(timeline, 1)
        assert [call for call in made if call[0] == "a"] == ["a0", "a1", "a2"]
        assert [call for call in made if call[0] == "b"] == ["b0", "b1", "b2"]
        orders.add(made[0])
    assert orders == {"a0", "b0"}


def test_calls_are_cancelled_and_reset() -> None:
    timeline = Timeline(1, 100)
    made: list[float] = []
    lane = timeline.lane("a")
    cancelled, later, earlier = (lane.callLater(2, lambda: made.append(timeline.now)) for _ in range(3))
    cancelled.cancel()
    later.reset(3)
    earlier.reset(1)
    assert (cancelled.active(), later.active(), later.getTime()) == (False, True, 103)
    run(timeline, 5)
    assert made == [101, 103]
    assert not later.active()


def test_a_paused_lane_makes_its_calls_when_it_continues() -> None:
    timeline = Timeline(1, 100)
    lane, made = timeline.lane("a"), list[float]()
    lane.callLater(1, lambda: made.append(timeline.now))
    dropped = lane.callLater(2, lambda: made.append(-1))
    postponed = lane.callLater(2, lambda: made.append(timeline.now))
    lane.pause()
    run(timeline, 5)
    dropped.cancel()
    postponed.reset(4)
    lane.resume()
    run(timeline, 5)
    assert made == [105, 109]


def test_a_fast_clock_calls_early_and_a_jump_moves_its_calls() -> None:
    timeline = Timeline(1, 100)
    clock, made = MachineClock(timeline.lane("a"), 2.0), list[float]()
    for delay in (2, 10, 40):
        clock.callLater(delay, lambda: made.append(timeline.now))
    run(timeline, 2)
    assert (made, clock.seconds()) == ([101], 104)
    clock.jump(20)
    run(timeline, 20)
    assert made == [101, 102, 110]


def test_a_clock_that_is_set_back_calls_late() -> None:
    timeline = Timeline(1, 100)
    clock, made = MachineClock(timeline.lane("a")), list[float]()
    clock.callLater(1, lambda: made.append(timeline.now))
    clock.jump(-3)
    clock.callLater(0, lambda: made.append(timeline.now))
    run(timeline, 10)
    assert made == [100, 104]


def test_a_killed_clock_makes_no_calls() -> None:
    timeline = Timeline(1, 100)
    lane, made = timeline.lane("a"), list[str]()
    clock = MachineClock(lane)
    clock.callLater(1, made.append, "before")
    lane.pause()
    run(timeline, 2)
    clock.callLater(1, made.append, "after")
    lane.resume()
    clock.kill()
    clock.callLater(1, made.append, "dead").reset(2)
    lane.callLater(1, made.append, "kernel")
    run(timeline, 5)
    assert made == ["kernel"]
