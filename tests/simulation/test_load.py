"""The clients of a run: what their history needs to be judged."""

from __future__ import annotations

from tests.simulation.drawing import draw_plan
from tests.simulation.run import run_plan


def test_a_group_is_judged_although_a_transaction_was_lost() -> None:
    # In this plan a power failure takes a part of __transaction_state, which has one replica, but no committed offsets.
    plan = draw_plan(56)
    outcome = run_plan(plan.with_actions([action for action in plan.actions if action.kind == "lose power"][:1]))
    assert outcome.findings == []
    assert outcome.happened["lose power"] == 1
