"""The figures of simulations in docs/RELIABILITY.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.simulation.page import (
    PAGE,
    PLANT_MARKS,
    RESULTS,
    RUN_MARKS,
    fill_page,
    read_results,
    record_tally,
    render_plants,
    render_run,
)
from tests.simulation.planted import PLANTS
from tests.simulation.runs import Tally
from tests.simulation.support import run_quietly

BUG = next(iter(PLANTS))


def test_the_page_shows_the_results() -> None:
    page = PAGE.read_text()
    assert fill_page(page, read_results(RESULTS)) == page


def test_a_run_is_recorded_beside_the_plants(tmp_path: Path) -> None:
    path = tmp_path / "simulation.json"
    tally = Tally(runs=2, happened=Counter({"cut": 3}), virtual_s=7200, elapsed_s=9, cpu_s=3)
    record_tally(path, tally, range(5, 7), None)
    record_tally(path, Tally(runs=4), range(1, 301), BUG)
    results = read_results(path)
    assert "seeds 5 to 6, none failed. It simulated 2.0 hours in 9 s, with 1.5 s" in render_run(results["run"])
    assert "3 × cut" in render_run(results["run"])
    assert "**not in 4 seeds**" in render_plants(results["plants"])
    assert render_plants({}).count("not tried") == len(PLANTS)


def test_failed_seeds_are_named(tmp_path: Path) -> None:
    outcome = run_quietly(1)
    record_tally(tmp_path / "results", Tally(runs=1, failed=[outcome]), range(1, 2), None)
    record_tally(tmp_path / "results", Tally(runs=1, failed=[outcome]), range(1, 301), BUG)
    results = read_results(tmp_path / "results")
    assert "seeds 1 to 1, 1 failed (1). It" in render_run(results["run"])
    assert "by seed 1 |" in render_plants(results["plants"])


def test_a_page_without_results_says_so() -> None:
    page = fill_page("".join((*RUN_MARKS, *PLANT_MARKS)), read_results(Path("missing")))
    assert "No run is recorded." in page
