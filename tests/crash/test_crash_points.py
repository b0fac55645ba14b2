"""A sample of `make crash`, which crashes at every operation of longer lives."""

from __future__ import annotations

import pytest

from kafkacompat.storage.files.operating_system import PORTABLE
from tests.crash.points import CrashPoints

pytestmark = pytest.mark.skipif(PORTABLE, reason="what is in memory is the same everywhere")


@pytest.mark.parametrize("seed", range(4))
def test_promises_hold_after_a_crash_at_each_operation(seed: int) -> None:
    tally = CrashPoints(seed, steps=100, stride=8).all()
    assert [f"{crash.command()}: {problem}" for crash, problem in tally.anomalies] == []
    assert tally.states > 100
