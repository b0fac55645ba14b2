"""The rule by which a goal is reached, missed or undecided."""

from __future__ import annotations

import pytest

from bench.verdict import Spread, compute_ratios, judge_spread


def test_spread_is_quartiles_around_the_median() -> None:
    assert Spread.of([5.0, 1.0, 4.0, 2.0, 3.0]) == Spread(2.0, 3.0, 4.0)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)


def test_ratios_are_taken_pair_by_pair() -> None:
    assert compute_ratios([2.0, 9.0], [1.0, 3.0]) == [2.0, 3.0]
    with pytest.raises(ValueError, match="longer"):
        compute_ratios([1.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("spread", "at_least", "verdict"),
    [
        (Spread(1.9, 2.0, 2.5), True, "reached"),
        (Spread(1.5, 1.9, 2.0), True, "undecided"),
        (Spread(1.5, 1.8, 1.99), True, "missed"),
        (Spread(1.0, 2.0, 9.0), False, "reached"),
        (Spread(2.0, 2.1, 9.0), False, "undecided"),
        (Spread(2.01, 2.1, 9.0), False, "missed"),
    ],
)
def test_goal_is_judged_by_median_and_quartiles(spread: Spread, at_least: bool, verdict: str) -> None:
    assert judge_spread(spread, 2.0, at_least=at_least) == verdict
