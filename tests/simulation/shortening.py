"""Leaves out what a failing run does not need: faults and work, many at once, then one by one."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.plan import Action, Plan


def shorten(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Return a plan that still fails, of which no single action can be left out.

    The part to leave out is first a half of the actions, then a quarter and so on (delta debugging, Zeller 1999).
    """
    actions = list(plan.actions)
    size = max(1, len(actions) // 2)
    while actions:
        reduced = _leave_out(plan, actions, size, fails)
        if size == 1 and len(reduced) == len(actions):
            break
        actions = reduced
        size = max(1, min(size // 2, len(actions)))
    return plan.with_actions(actions)


def _leave_out(plan: Plan, actions: list[Action], size: int, fails: Callable[[Plan], bool]) -> list[Action]:
    """Try once to leave out each part of this size, the last one first: what comes later matters less."""
    start = len(actions)
    while start > 0:
        start = max(0, start - size)
        rest = actions[:start] + actions[start + size :]
        if len(rest) < len(actions) and fails(plan.with_actions(rest)):
            actions = rest
    return actions
