"""How long the waits between attempts are."""

from __future__ import annotations

from random import Random

from kafkacompat.backoff import JITTER, Backoff


class MiddleRandom(Random):
    """Draws the middle of each range."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


def test_waits_double_up_to_the_longest_and_begin_again() -> None:
    backoff = Backoff(0.1, 0.5, MiddleRandom())
    assert [round(backoff.next_s(), 6) for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    backoff.reset()
    assert round(backoff.next_s(), 6) == 0.1


def test_jitter_is_drawn_from_the_given_source_within_its_share() -> None:
    waits = [Backoff(1, 1, Random(seed)).next_s() for seed in range(100)]
    assert waits == [Backoff(1, 1, Random(seed)).next_s() for seed in range(100)]
    assert 1 - JITTER <= min(waits) < 1 - JITTER / 2 and 1 + JITTER / 2 < max(waits) <= 1 + JITTER


def test_no_backoff_is_no_wait() -> None:
    backoff = Backoff(0, 0, Random(1))
    assert [backoff.next_s() for _ in range(3)] == [0, 0, 0]
