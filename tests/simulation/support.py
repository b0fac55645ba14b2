"""What the tests of the simulation share."""

from __future__ import annotations

import logging

from tests.simulation.run import Outcome
from tests.simulation.runs import run_seed

LOAD_SHARE = 0.3
"""Share of the load in the tests; `make simulate` runs all of it."""


def run_quietly(seed: int, plant: str | None = None, load_share: float = LOAD_SHARE) -> Outcome:
    """Run a seed without log lines; the fixture in conftest.py switches them on again."""
    logging.disable(logging.CRITICAL)
    return run_seed(seed, plant, load_share)


def check_seed(seed: int) -> None:
    """Fail if the simulation of a seed finds anything."""
    outcome = run_quietly(seed)
    command = f"python -m tests.simulation --seed {seed} --load {LOAD_SHARE}"
    assert not outcome.findings, "\n".join([*outcome.findings, f"Repeat it: {command}"])
