"""The figures of simulations: docs/simulation.json, and the tables of it in docs/RELIABILITY.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat_tests.pages import render_table, replace_section
from tests.simulation.faults import FAULTS
from tests.simulation.planted import PLANTS
from tests.simulation.work import WORK

if TYPE_CHECKING:
    from tests.simulation.runs import Tally

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = DOCS / "simulation.json"
PAGE = DOCS / "RELIABILITY.md"
RUN_MARKS = ("<!-- simulation: made by tests/simulation/page.py -->\n", "<!-- end of simulation -->")
PLANT_MARKS = ("<!-- plants: made by tests/simulation/page.py -->\n", "<!-- end of plants -->")


def record_tally(path: Path, tally: Tally, seeds: range, plant: str | None) -> None:
    """Put the figures of a run into a file of results, in the place of an earlier one of the same kind."""
    results = read_results(path)
    if plant is not None:
        results["plants"][plant] = {
            "found_by_seed": tally.failed[0].seed if tally.failed else None,
            "first_seed": seeds.start,
            "seeds_tried": tally.runs,
        }
    else:
        results["run"] = {
            "first_seed": seeds.start,
            "seeds": tally.runs,
            "failed": [outcome.seed for outcome in tally.failed],
            "virtual_s": round(tally.virtual_s),
            "elapsed_s": round(tally.elapsed_s),
            "cpu_s_a_seed": round(tally.cpu_s / max(1, tally.runs), 2),
            "happened": {name: tally.happened[name] for name in (*FAULTS, *WORK)},
        }
    path.write_text(json.dumps(results, indent=1) + "\n")


def read_results(path: Path) -> dict[str, Any]:
    """Read a file of results, which may be missing."""
    return dict(json.loads(path.read_text())) if path.exists() else {"run": None, "plants": {}}


def render_run(run: Mapping[str, Any] | None) -> str:
    """Render the figures of the last long run as a sentence, and the counts as a table."""
    if run is None:
        return "No run is recorded.\n"
    last = run["first_seed"] + run["seeds"] - 1
    failed = f"{len(run['failed'])} failed ({', '.join(map(str, run['failed']))})" if run["failed"] else "none failed"
    hours = run["virtual_s"] / 3600
    sentence = (
        f"The last recorded run: seeds {run['first_seed']:,} to {last:,}, {failed}. It simulated {hours:.1f} hours in"
        f" {run['elapsed_s']:,} s, with {run['cpu_s_a_seed']:g} s of CPU time a seed. What happened in it:\n\n"
    )
    counts = [
        (title, ", ".join(f"{run['happened'][name]:,} × {name}" for name in names))
        for title, names in (("faults", FAULTS), ("administration", WORK))
    ]
    return sentence + render_table(("kind", "number"), counts)


def render_plants(plants: Mapping[str, Mapping[str, Any]]) -> str:
    """Render a row for each planted bug."""
    rows = [(f"`{name}`", plant.description, _describe_search(plants.get(name))) for name, plant in PLANTS.items()]
    return render_table(("bug", "what it does", "found"), rows)


def _describe_search(search: Mapping[str, Any] | None) -> str:
    if search is None:
        return "not tried"
    if search["found_by_seed"] is None:
        return f"**not in {search['seeds_tried']} seeds**"
    return f"by seed {search['found_by_seed']}"


def fill_page(page: str, results: Mapping[str, Any]) -> str:
    """Return the page with the tables of the results."""
    page = replace_section(page, *RUN_MARKS, render_run(results["run"]))
    return replace_section(page, *PLANT_MARKS, render_plants(results["plants"]))


def record_figures(tally: Tally, seeds: range, plant: str | None) -> None:
    """Write the figures of a run into docs/simulation.json and docs/RELIABILITY.md."""
    record_tally(RESULTS, tally, seeds, plant)
    PAGE.write_text(fill_page(PAGE.read_text(), read_results(RESULTS)))
