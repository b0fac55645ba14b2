"""The simulation finds bugs that are planted; `--plant` tries them all."""

from __future__ import annotations

import pytest

from tests.simulation.planted import PLANTS, plant
from tests.simulation.support import run_quietly

SEEDS = 40


# The seeds before these find nothing, which takes time.
@pytest.mark.parametrize(("name", "first"), [("early-answer", 1), ("truncate-to-high-watermark", 30)])
def test_a_planted_bug_is_found(name: str, first: int) -> None:
    assert any(run_quietly(seed, name).findings for seed in range(first, first + SEEDS))


@pytest.mark.parametrize("name", PLANTS)
def test_a_plant_leaves_no_trace(name: str) -> None:
    before = [vars(owner)[attribute] for owner, attribute, _ in PLANTS[name].replacements]
    with plant(name):
        assert [vars(owner)[attribute] for owner, attribute, _ in PLANTS[name].replacements] != before
    assert [vars(owner)[attribute] for owner, attribute, _ in PLANTS[name].replacements] == before
