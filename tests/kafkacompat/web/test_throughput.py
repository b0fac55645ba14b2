"""Rates of topics and instances over time, and their plots."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.task import Clock

from kafkacompat.web.plots import HEIGHT, WIDTH, find_top, make_plots
from kafkacompat.web.throughput import MAX_HISTORIES, POINTS, STEP_S, Histories, Rates, Throughput


class Traffic:
    """The counters of one partition."""

    led_records = led_bytes = sent_bytes = 0

    def update(self, log: object) -> None:
        """Nothing grows by itself."""


class FakePartition(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__


def make_partition(topic: str) -> Any:
    return FakePartition(topic=topic, traffic=Traffic(), log=None)


def test_rates_are_those_since_the_last_pass() -> None:
    clock = Clock()
    partitions = [make_partition("shop.a"), make_partition("shop.a"), make_partition("b")]
    partitions[2].traffic.led_bytes = 1 << 40
    throughput = Throughput(clock, partitions, lambda topic: "shop" if topic.startswith("shop.") else None)
    throughput.start()
    clock.advance(0)
    assert throughput.read_all() == ()
    for partition in partitions[:2]:
        partition.traffic.led_records, partition.traffic.led_bytes, partition.traffic.sent_bytes = 10, 1000, 50
    clock.advance(STEP_S)
    rates = Rates(20 / STEP_S, 2000 / STEP_S, 100 / STEP_S)
    assert throughput.read_all() == throughput.read_topic("shop.a") == throughput.read_instance("shop") == (rates,)
    assert throughput.list_busy_topics() == {"shop.a": rates}
    # A partition that is new has no growth from before, and one that is gone takes nothing away.
    partitions[0] = make_partition("b")
    partitions[0].traffic.led_records = 5
    clock.advance(STEP_S)
    assert throughput.read_all() == (rates, Rates(5 / STEP_S))
    assert throughput.read_topic("b") == (Rates(), Rates(5 / STEP_S))
    assert throughput.read_topic("never") == (Rates(), Rates())
    throughput.stop()
    assert clock.getDelayedCalls() == []


def test_a_pass_takes_turns_and_ends_with_the_broker() -> None:
    clock = Clock()
    throughput = Throughput(clock, [make_partition("t") for _ in range(1000)], lambda topic: None)
    throughput.start()
    clock.advance(0)
    assert len(clock.getDelayedCalls()) == 1
    throughput.stop()
    clock.pump([0, STEP_S, STEP_S])
    assert clock.getDelayedCalls() == [] and throughput.read_all() == ()


def test_histories_are_bounded_and_end_without_traffic() -> None:
    histories = Histories()
    for step in range(MAX_HISTORIES + 20):
        histories.add({f"topic-{step}": Rates(1, 1, 1), "always": Rates(2, 2, 2)})
    assert len(histories._by_name) <= MAX_HISTORIES
    assert len(histories.read("always")) == POINTS and len(histories.read("topic-0")) == POINTS
    assert not any(map(any, histories.read("topic-0")))
    for _ in range(POINTS):
        histories.add({})
    assert histories.list_recent() == {} and histories._by_name == {}


@pytest.mark.parametrize(
    ("largest", "top"), [(0, 3), (3, 3), (3.1, 6), (7, 15), (16, 30), (31, 60), (1e9, 1.5e9), (1e300, 1.5e300)]
)
def test_the_top_of_a_plot_is_a_round_number(largest: float, top: float) -> None:
    assert find_top(largest) == pytest.approx(top)


def test_plots_stay_in_their_frame() -> None:
    for history in ([], [Rates(1, 2, 3)], [Rates(number, 10.0**number, 0) for number in range(POINTS)]):
        for plot in make_plots(history):
            for line in plot.lines:
                points = [tuple(map(float, point.split(","))) for point in line.points.split()]
                assert len(points) == len(history) and (line.latest == "–") == (not history)
                assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
                assert not points or points[-1][0] == WIDTH


def test_the_busiest_names_have_histories_if_too_many_have_traffic() -> None:
    histories = Histories()
    histories.add({})
    rates = {f"topic-{number}": Rates(1, number + 1, 0) for number in range(2 * MAX_HISTORIES)}
    for _ in range(3):
        histories.add(rates)
    busy, quiet = f"topic-{2 * MAX_HISTORIES - 1}", "topic-0"
    assert histories.read(busy) == (rates[busy],) * 3 and histories.list_recent()[busy] == rates[busy]
    assert len(histories.list_recent()) == MAX_HISTORIES
    assert histories.read(quiet) == (), "its rates are not known, and not 0"
    histories.add({quiet: Rates(1, 1, 1)})
    assert histories.read(quiet) == (Rates(1, 1, 1),)
    assert histories.read("never") == (Rates(),)
