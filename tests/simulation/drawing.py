"""Draws the plan of a seed."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.faults import FAULTS
from tests.simulation.plan import Action, Plan, draw_times
from tests.simulation.settings import Settings
from tests.simulation.work import WORK

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS_IN_A_RUN = 8
"""Kinds of faults that a run is made of: a few at a time meet each other more often than all of them do."""


def draw_plan(seed: int, load_share: float = 1.0) -> Plan:
    """Return the plan of a seed: its settings, faults and work. A smaller *load_share* ends the load earlier."""
    rng = Random(f"plan {seed}")
    settings = Settings.draw(rng)
    settings = settings._replace(load_s=settings.load_s * load_share)
    kinds = _draw_kinds(FAULTS, rng, KINDS_IN_A_RUN)
    pause_s = rng.choice((1.0, 2.0, 4.0))
    faults = [
        _draw_action(time_s, FAULTS, kinds, settings, rng)
        for time_s in draw_times(rng, settings.load_s, (0.2 * pause_s, 2 * pause_s))
    ]
    work = [
        _draw_action(time_s, WORK, list(WORK), settings, rng)
        for time_s in draw_times(rng, settings.load_s, (0.5, rng.choice((4.0, 10.0))))
    ]
    return Plan(seed, settings, sorted(faults + work, key=lambda action: action.time_s))


def _draw_kinds(table: Mapping[str, Any], rng: Random, count: int) -> list[str]:
    """Draw different kinds, those of more weight more often."""
    names = list(table)
    kinds: dict[str, None] = {}
    while len(kinds) < count:
        kinds[rng.choices(names, [table[name].weight for name in names])[0]] = None
    return list(kinds)


def _draw_action(time_s: float, table: Mapping[str, Any], kinds: list[str], settings: Settings, rng: Random) -> Action:
    kind = rng.choices(kinds, [table[name].weight for name in kinds])[0]
    return Action(time_s, kind, table[kind].draw(settings, rng))
