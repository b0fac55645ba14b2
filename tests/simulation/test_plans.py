"""Plans: drawn, written, read, refused and shortened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.simulation.__main__ import main
from tests.simulation.drawing import draw_plan
from tests.simulation.plan import VERSION, Plan, PlanError
from tests.simulation.shortening import shorten


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    for seed in range(20):
        plan = draw_plan(seed)
        plan.write(tmp_path / "plan.json")
        assert Plan.read(tmp_path / "plan.json") == plan


def test_a_plan_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    draw_plan(1).write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": VERSION + 1}))
    monkeypatch.setattr("sys.argv", ["simulation", "--plan", str(path)])
    assert main() == 2
    problem = capsys.readouterr().err
    assert f"plan.json is a plan of version {VERSION + 1}" in problem and problem.count("\n") == 1


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", f'{{"version": {VERSION}}}', f'{{"version": {VERSION}, "seed": 1, "settings": {{}}}}']
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(PlanError, match=r"plan\.json is not a plan of the simulation"):
        Plan.read(path)


def test_a_plan_keeps_only_what_its_failure_needs() -> None:
    plan = next(plan for plan in map(draw_plan, range(100)) if len(plan.actions) > 20)
    needed = [plan.actions[3], plan.actions[11], plan.actions[-1]]
    tried = []

    def fails(shorter: Plan) -> bool:
        tried.append(shorter)
        return all(action in shorter.actions for action in needed)

    assert shorten(plan, fails).actions == needed
    assert len(tried) < 5 * len(plan.actions)


def test_a_failure_that_needs_nothing_has_an_empty_plan() -> None:
    assert shorten(draw_plan(1), lambda shorter: True).actions == []
