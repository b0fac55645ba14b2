"""A sample of `make simulate`: the first of fifty seeds with a shorter load; in four modules, which run at the same time."""

from __future__ import annotations

import pytest

from tests.simulation.support import check_seed


@pytest.mark.parametrize("seed", range(1, 14))
def test_a_seed(seed: int) -> None:
    check_seed(seed)
