"""The simulated instances: the same functions as in the broker, over demands of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_integration.errors import PipelineError
from spark_integration.traffic.demand import KINDS, MOVING, RECORDED, SKEWED, Demand, make_demand, read_demand
from spark_integration.traffic.plots import draw_plots
from spark_integration.traffic.settings import ALGORITHMS, TrafficSettings
from spark_integration.traffic.simulation import simulate
from spark_integration.traffic.summary import format_table, summarize

LIMIT = 1_000_000.0


def skew(seconds: int, total: float = 1.0) -> Demand:
    rows = [[0.9 * LIMIT * total, 0.05 * LIMIT * total, 0.05 * LIMIT * total]] * seconds
    return Demand("shop", SKEWED, LIMIT, [1, 1, 1], rows)


def test_a_skew_is_served_by_shared_and_not_by_the_even_split() -> None:
    shared, static = (simulate(skew(30), algorithm) for algorithm in ("shared", "static"))
    assert 0.95 <= shared.usable <= 1.0 and shared.overshoot <= 0.01
    assert 0.4 <= static.usable <= 0.47 and static.overshoot == 0


def test_the_article_exceeds_the_limit_when_all_brokers_grow() -> None:
    rows = [[0.8 * LIMIT, 0.1 * LIMIT, 0.1 * LIMIT]] * 20 + [[2 * LIMIT] * 3] * 20
    demand = Demand("shop", MOVING, LIMIT, [1, 1, 1], rows, [20])
    article, shared = (simulate(demand, algorithm) for algorithm in ("article", "shared"))
    assert article.peak > 1.2 > 1.1 > shared.peak


def test_a_move_is_adapted_to_within_about_an_interval() -> None:
    first = [0.95 * LIMIT, 0.0, 0.0]
    demand = Demand("shop", MOVING, LIMIT, [1, 1, 1], [first] * 20 + [first[::-1]] * 20, [20])
    (time,) = simulate(demand, "shared").adapting_s
    assert time <= 1.25


@pytest.mark.parametrize("number", range(4))
def test_made_demands_are_of_every_kind_and_the_same_each_time(number: int) -> None:
    demand = make_demand(number, 20, 40, 7)
    assert demand.kind == KINDS[number]
    assert demand == make_demand(number, 20, 40, 7) != make_demand(number, 20, 40, 8)
    assert len(demand.bytes) == 40 and {len(row) for row in demand.bytes} == {len(demand.partitions)}
    assert bool(demand.moves) == (demand.kind != SKEWED)
    assert simulate(demand, "shared").overshoot <= 0.11


def test_a_summary_has_the_figures_of_each_kind_and_algorithm() -> None:
    demands = [make_demand(number, 5, 30, 1) for number in range(4)]
    outcomes = [simulate(demand, algorithm) for demand in demands for algorithm in ALGORITHMS]
    figures = summarize(outcomes)
    assert list(figures)[-1] == "all" and set(figures) == {*KINDS, "all"}
    assert figures["skewed"]["shared"]["usable"] > 1.5 * figures["skewed"]["static"]["usable"]
    assert figures["surging"]["article"]["peak_p99"] > figures["surging"]["shared"]["peak_p99"]
    assert len(format_table(figures)) == 2 + 5 * 3
    assert "adapting_s_p50" not in figures["skewed"]["shared"]


def test_plots_are_drawn(tmp_path: Path) -> None:
    demand = make_demand(2, 4, 25, 1)
    outcomes = {algorithm: simulate(demand, algorithm) for algorithm in ALGORITHMS}
    draw_plots(list(outcomes.values()), demand, outcomes, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_recorded_rows_become_a_demand() -> None:
    rows = [("b", 11, 5.0, 100.0, 2), ("a", 10, 7.0, 100.0, 1), ("a", 12, 9.0, 100.0, 1)]
    assert read_demand("shop", rows) == Demand("shop", RECORDED, 100.0, [1, 2], [[7, 0], [0, 5], [9, 0]])


def test_a_short_recording_is_judged() -> None:
    assert simulate(read_demand("shop", [("a", 0, 50.0, 100.0, 1)]), "shared").usable > 0


@pytest.mark.parametrize(
    "wrong",
    [{"brokers": 2}, {"seconds": 5}, {"instances": 0}, {"interval_ms": 10}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_figures_that_nothing_can_be_made_of_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(PipelineError, match=f"--{next(iter(wrong)).replace('_', '-')} is"):
        TrafficSettings(**wrong).check()  # type: ignore[arg-type]
