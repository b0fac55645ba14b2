"""A sample of `make simulate`: the next of fifty seeds with a shorter load; in four modules, which run at the same time."""

from __future__ import annotations

import pytest

from tests.simulation.support import check_seed


@pytest.mark.parametrize("seed", range(27, 39))
def test_a_seed(seed: int) -> None:
    check_seed(seed)
