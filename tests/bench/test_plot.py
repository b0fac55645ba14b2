"""The plot's logarithmic axis: it includes 1 and every quartile."""

from __future__ import annotations

from bench.plot import TICKS, high_end, low_end
from bench.verdict import Spread


def test_the_axis_reaches_beyond_every_quartile_and_one() -> None:
    near, far = [("near", Spread(0.9, 1.0, 1.1))], [("far", Spread(0.11, 1.0, 24.0))]
    assert (low_end(near), high_end(near)) == (0.5, 2)
    assert (low_end(far), high_end(far)) == (0.1, 50)
    assert (low_end([]), high_end([])) == (0.5, 2)


def test_ratios_beyond_all_ticks_keep_the_outermost() -> None:
    rows = [("extreme", Spread(0.001, 1.0, 1000.0))]
    assert (low_end(rows), high_end(rows)) == (TICKS[0], TICKS[-1])
