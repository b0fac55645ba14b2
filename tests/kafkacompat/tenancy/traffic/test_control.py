"""Brokers and a master together: whatever is lost, an instance gets its limit and not more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest

from kafkacompat.tenancy.traffic.control import TrafficControl, find_hurried_ms, find_report_delay_ms
from kafkacompat.tenancy.traffic.loans import ARTICLE, InstanceLimits
from kafkacompat.tenancy.traffic.master import PRODUCE, FlowShare, FlowUsage, TrafficMaster
from kafkacompat.tenancy.traffic.shared import Usage
from kafkacompat.tenancy.traffic.static import HOLD_MS

LIMIT = 1_000_000
INTERVAL_MS = 1000
STEP_MS = 10
REQUEST_BYTES = 1000
BROKERS = (1, 2, 3)


class Rig:
    """Brokers that report to a master, and clients that send as much as each broker's demand says and wait when they must."""

    def __init__(self, algorithm: str = "shared", brokers: Sequence[int] = BROKERS, seed: int = 0) -> None:
        self.now_ms = 1_000_000
        self.rng = Random(seed)
        self.limits = {"shop": InstanceLimits(LIMIT, -1, algorithm)}
        self.brokers = list(brokers)
        self.partitions = dict.fromkeys(brokers, 1)
        self.controls: dict[int, TrafficControl] = {}
        self.next_report: dict[int, int] = {}
        self.reported_ms: dict[int, int] = {}
        self.was_answered = dict.fromkeys(brokers, True)
        self.backlog = dict.fromkeys(brokers, 0.0)
        self.used: list[dict[int, int]] = []
        self.loses_report: Callable[[int], bool] = lambda broker: False
        self.loses_answer: Callable[[int], bool] = lambda broker: False
        self.new_master()
        for broker in brokers:
            control = TrafficControl(broker, INTERVAL_MS, self.now_ms, lambda name: self.partitions)
            control.set_brokers(self.brokers, self.now_ms)
            control.configure(self.limits, self.now_ms)
            control.on_held_back = lambda broker=broker: self.hurry(broker)  # type: ignore[misc]
            self.controls[broker] = control
            self.next_report[broker] = self.now_ms + self.rng.randrange(INTERVAL_MS)

    def new_master(self) -> None:
        self.master: TrafficMaster | None = TrafficMaster(INTERVAL_MS, self.now_ms, lambda name: self.partitions)

    def hurry(self, broker: int) -> None:
        soon_ms = find_hurried_ms(self.now_ms, self.reported_ms.get(broker, 0), INTERVAL_MS)
        self.next_report[broker] = min(self.next_report[broker], soon_ms)

    def share(self, broker: int) -> float:
        bucket = self.controls[broker].by_name["shop"].produced.bucket
        assert bucket is not None
        return bucket.share

    def total_share(self) -> float:
        return sum(self.share(broker) for broker in self.controls)

    def report(self, broker: int) -> None:
        control = self.controls[broker]
        usages: list[FlowUsage] = []
        list(control.measure(self.now_ms, usages, gives_back=self.was_answered[broker]))
        self.reported_ms[broker] = self.now_ms
        self.next_report[broker] = self.now_ms + find_report_delay_ms(len(usages), INTERVAL_MS)
        if self.master is None:
            control.take_back(self.now_ms)
            self.was_answered[broker] = False
            list(control.decay(self.now_ms))
            return
        shares: list[FlowShare] = []
        if not self.loses_report(broker):
            list(self.master.answer(broker, usages, self.brokers, self.limits, self.now_ms, shares))
            if not self.loses_answer(broker):
                control.apply(shares, self.now_ms)
                self.was_answered[broker] = True
                return
        self.was_answered[broker] = False
        list(control.decay(self.now_ms))

    def run(self, seconds: float, demand: dict[int, float]) -> float:
        """Let clients send by *demand*, a multiple of the limit; return the part of the limit that was used."""
        begun, before = self.now_ms, len(self.used)
        while self.now_ms < begun + seconds * 1000:
            self.used.append({broker: self.send(broker, demand.get(broker, 0.0)) for broker in self.controls})
            for broker in self.controls:
                if self.now_ms >= self.next_report[broker]:
                    self.report(broker)
            self.now_ms += STEP_MS
        used = sum(sum(step.values()) for step in self.used[before:])
        return used / (LIMIT * seconds)

    def send(self, broker: int, demand: float) -> int:
        """Send what the demand brings in this step; clients hold no more than a second of it while they wait."""
        most = demand * LIMIT
        self.backlog[broker] = min(self.backlog[broker] + most * STEP_MS / 1000, most)
        flow, sent = self.controls[broker].by_name["shop"].produced, 0
        while self.backlog[broker] >= REQUEST_BYTES and not flow.find_throttle_ms(self.now_ms):
            flow.charge(REQUEST_BYTES, self.now_ms)
            self.backlog[broker] -= REQUEST_BYTES
            sent += REQUEST_BYTES
        return sent

    def find_worst_overshoot(self, window_s: int) -> float:
        """Return the most that was used in a window of this length, beyond what the limit allows in it, as parts of an interval."""
        steps, sums = window_s * 1000 // STEP_MS, [sum(step.values()) for step in self.used]
        total = sum(sums[:steps])
        worst = total
        for index in range(steps, len(sums)):
            total += sums[index] - sums[index - steps]
            worst = max(worst, total)
        return (worst - LIMIT * window_s) / (LIMIT * INTERVAL_MS / 1000)


def test_a_skew_of_nine_to_one_gets_the_whole_limit() -> None:
    rig = Rig()
    rig.run(5, {1: 0.9, 2: 0.05, 3: 0.05})
    assert 0.95 <= rig.run(20, {1: 0.9, 2: 0.05, 3: 0.05}) <= 1.0


def test_a_demand_beyond_the_limit_gets_the_limit() -> None:
    rig = Rig()
    rig.run(5, {1: 9, 2: 0.5, 3: 0.5})
    assert 0.95 <= rig.run(20, {1: 9, 2: 0.5, 3: 0.5}) <= 1.01


def test_an_idle_instance_begins_within_an_interval_and_moves_within_one() -> None:
    rig = Rig()
    rig.run(5, {})
    assert rig.run(1, {1: 1}) > 0.6
    assert rig.run(3, {1: 1}) >= 0.95
    rig.run(1, {2: 1})
    assert rig.share(2) >= 0.9 * LIMIT
    assert rig.run(3, {2: 1}) >= 0.95


def test_the_article_exceeds_the_limit_under_a_skew() -> None:
    rig = Rig(ARTICLE)
    rig.run(20, {1: 0.8, 2: 0.1, 3: 0.1})
    assert rig.total_share() > 1.15 * LIMIT
    assert rig.run(2, {1: 2, 2: 2, 3: 2}) > 1.1


def test_a_broker_alone_has_all() -> None:
    rig = Rig(brokers=(7,))
    assert rig.share(7) == LIMIT
    assert 0.99 < rig.run(5, {7: 2}) < 1.25


def test_without_a_master_nobody_gets_less_for_the_hold_and_then_the_static_share() -> None:
    rig = Rig()
    demand = {1: 0.9, 2: 0.05, 3: 0.05}
    rig.run(10, demand)
    rig.master = None
    assert rig.run(HOLD_MS / 1000, demand) >= 0.95
    rig.run(15, demand)
    assert [rig.share(broker) for broker in BROKERS] == pytest.approx([LIMIT / 3] * 3)
    assert rig.find_worst_overshoot(1) <= 1.01
    rig.new_master()
    rig.run(4, demand)
    assert rig.run(10, demand) >= 0.95
    assert rig.total_share() <= LIMIT * 1.0001


@pytest.mark.parametrize("seed", range(12))
def test_lost_messages_and_masters_never_let_an_instance_exceed_its_limit(seed: int) -> None:
    rig = Rig(seed=seed)
    rng = rig.rng
    rig.loses_report = lambda broker: rng.random() < 0.1
    rig.loses_answer = lambda broker: rng.random() < 0.2
    for _ in range(25):
        demand = {broker: rng.choice((0, 0.02, 0.3, 1, 3)) for broker in BROKERS}
        rig.run(rng.randint(1, 4), demand)
        assert rig.total_share() <= LIMIT * 1.0001
        if rng.random() < 0.2:
            rig.new_master() if rng.random() < 0.7 else setattr(rig, "master", None)
        elif rig.master is None:
            rig.new_master()
    assert rig.find_worst_overshoot(1) <= 1.05
    assert rig.find_worst_overshoot(10) <= 1.05


def test_a_broker_that_falls_silent_keeps_what_it_has_in_the_masters_account() -> None:
    rig = Rig()
    rig.run(5, {1: 1})
    silent = {1}
    rig.loses_report = lambda broker: broker in silent
    rig.run(5, {2: 1})
    assert rig.total_share() <= LIMIT * 1.0001
    rig.run(40, {2: 1})
    assert rig.share(1) == pytest.approx(LIMIT / 3, rel=0.02)
    assert rig.share(2) == pytest.approx(LIMIT * 2 / 3, rel=0.05)
    assert rig.total_share() <= LIMIT * 1.0001
    rig.brokers.remove(1)
    rig.controls.pop(1)
    for control in rig.controls.values():
        control.set_brokers(rig.brokers, rig.now_ms)
    assert rig.run(5, {2: 1}) > 0.7
    assert rig.share(2) >= 0.97 * LIMIT


def test_a_share_follows_its_limit() -> None:
    rig = Rig()
    rig.run(5, {1: 1})
    before = rig.share(1)
    rig.limits["shop"] = InstanceLimits(LIMIT // 2, -1)
    rig.controls[1].configure(rig.limits, rig.now_ms)
    assert rig.share(1) == pytest.approx(before / 2)
    rig.controls[1].configure({"shop": InstanceLimits(-1, -1)}, rig.now_ms)
    assert rig.controls[1].by_name["shop"].produced.bucket is None and not rig.controls[1].has_limits
    rig.controls[1].configure({}, rig.now_ms)
    assert not rig.controls[1].by_name


def test_without_reports_of_all_brokers_a_new_master_raises_no_share_for_some_intervals() -> None:
    now, limits = 0, {"shop": InstanceLimits(LIMIT, -1)}
    master = TrafficMaster(INTERVAL_MS, now, lambda name: {})
    usage = FlowUsage("shop", PRODUCE, Usage(LIMIT, LIMIT, 1000))

    def report(now_ms: int) -> float:
        shares: list[FlowShare] = []
        list(master.answer(1, [usage], [1, 2], limits, now_ms, shares))
        return shares[0].share

    assert report(100) == 1000
    assert report(5001) == pytest.approx(LIMIT / 2, rel=0.02)


def test_entries_of_unknown_and_unlimited_instances_are_ignored() -> None:
    master = TrafficMaster(INTERVAL_MS, 0, lambda name: {})
    usage = Usage(1, 0, 1)
    entries = [FlowUsage("gone", PRODUCE, usage), FlowUsage("shop", 1, usage), FlowUsage("shop", 7, usage)]
    shares: list[FlowShare] = []
    list(master.answer(1, entries, [1], {"shop": InstanceLimits(LIMIT, -1)}, 0, shares))
    assert not shares


def test_all_brokers_take_static_shares_where_the_controller_divides_nothing() -> None:
    rig = Rig()
    rig.partitions = {1: 3, 2: 1}
    for control in rig.controls.values():
        list(control.use_static(rig.now_ms))
    floor = LIMIT * 0.02 / 3
    lendable = LIMIT - 3 * floor
    assert [rig.share(broker) for broker in BROKERS] == pytest.approx(
        [floor + lendable * 3 / 4, floor + lendable / 4, floor]
    )


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0])
def test_impossible_numbers_are_ignored(wrong: float) -> None:
    master = TrafficMaster(INTERVAL_MS, 0, lambda name: {})
    limits = {"shop": InstanceLimits(LIMIT, -1)}
    shares: list[FlowShare] = []
    for usage in (Usage(wrong, 0, 1), Usage(1, wrong, 1), Usage(1, 0, wrong)):
        list(master.answer(1, [FlowUsage("shop", PRODUCE, usage)], [1], limits, 0, shares))
    assert not shares
    rig = Rig()
    before = rig.share(1)
    rig.controls[1].apply([FlowShare("shop", PRODUCE, wrong), FlowShare("gone", PRODUCE, 1.0)], rig.now_ms)
    assert rig.share(1) == before
