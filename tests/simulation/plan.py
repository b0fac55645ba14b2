"""A run as data: its settings, and what happens when. A plan can be written to a file, made shorter, and run again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.simulation.settings import Settings

VERSION = 2
"""Increases with each change of the simulation after which an older plan is another run."""


class Action(NamedTuple):
    """Something that happens once: ``kind`` is a name in the tables of faults or of work."""

    time_s: float
    kind: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value}" for name, value in self.arguments.items())
        return f"{self.time_s:7.2f} s {self.kind}({arguments})"


class PlanError(Exception):
    """A plan cannot be run; the message is one sentence."""


class Plan(NamedTuple):
    """A whole run."""

    seed: int
    settings: Settings
    actions: list[Action]

    def with_actions(self, actions: Sequence[Action]) -> Plan:
        """Return the plan with other actions."""
        return self._replace(actions=list(actions))

    def write(self, path: Path) -> None:
        """Write the plan to a file."""
        fields = {
            "version": VERSION,
            "seed": self.seed,
            "settings": self.settings.encode(),
            "actions": [list(action) for action in self.actions],
        }
        path.write_text(json.dumps(fields, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read a plan from a file; raises PlanError."""
        try:
            fields = json.loads(path.read_text())
            version = fields["version"]
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise PlanError(f"{path} is not a plan of the simulation: {problem}") from problem
        if version != VERSION:
            raise PlanError(
                f"{path} is a plan of version {version} of the simulation, and this is version {VERSION}: find the seed again"
            )
        try:
            settings = Settings.decode(fields["settings"])
            return cls(int(fields["seed"]), settings, [Action(*action) for action in fields["actions"]])
        except (ValueError, KeyError, TypeError) as problem:
            raise PlanError(f"{path} is not a plan of the simulation: {problem!r}") from problem


def draw_times(rng: Random, seconds: float, pause_s: tuple[float, float]) -> list[float]:
    """Return times from 0 to *seconds* that are pauses of some length apart."""
    times = []
    time_s = rng.uniform(0, pause_s[1])
    while time_s < seconds:
        times.append(round(time_s, 3))
        time_s += rng.uniform(*pause_s)
    return times
