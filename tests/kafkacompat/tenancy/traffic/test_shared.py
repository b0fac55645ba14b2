"""Dividing by need: the sum never exceeds the limit, and brokers that need more get what others leave."""

from __future__ import annotations

from random import Random

import pytest

from kafkacompat.tenancy.traffic.shared import (
    FLOOR_PART,
    HEADROOM,
    MET,
    Usage,
    divide_by_need,
    find_floor,
    find_grant,
    find_kept_share,
    find_level,
    find_need,
)
from kafkacompat.tenancy.traffic.static import DECAY_INTERVALS, HOLD_MS, decay, divide_by_partitions

LIMIT = 1000.0
FLOOR = 10.0


def test_a_broker_alone_has_the_whole_limit() -> None:
    assert find_floor(LIMIT, 1) == find_floor(LIMIT, 0) == LIMIT
    assert find_floor(LIMIT, 4) == LIMIT * FLOOR_PART / 4


def test_needs_are_met_and_the_rest_goes_to_brokers_that_hold_back() -> None:
    assert divide_by_need(LIMIT, FLOOR, [110, 60, 0], [True, False, False]) == pytest.approx([930, 60, 10])


def test_without_waiting_clients_one_half_of_the_rest_goes_by_need_and_the_other_stays_free() -> None:
    assert divide_by_need(LIMIT, FLOOR, [110, 10], [False, False]) == pytest.approx([FLOOR + 100 + 440, FLOOR])
    assert divide_by_need(LIMIT, FLOOR, [0, 0], [False, False]) == [FLOOR, FLOOR]


def test_too_little_is_filled_up_from_below() -> None:
    assert divide_by_need(LIMIT, FLOOR, [2000, 100, 900], [True] * 3) == pytest.approx([450, 100, 450])


def test_a_broker_that_holds_back_without_a_need_gets_the_rest() -> None:
    assert divide_by_need(LIMIT, FLOOR, [5, 5], [True, False]) == pytest.approx([990, 10])


@pytest.mark.parametrize("seed", range(50))
def test_shares_never_add_up_to_more_than_the_limit_and_no_broker_is_below_its_floor(seed: int) -> None:
    rng = Random(seed)
    count = rng.randint(1, 30)
    needs = [rng.choice((0.0, rng.expovariate(1 / 50), rng.expovariate(1 / 500))) for _ in range(count)]
    holding = [rng.random() < 0.3 for _ in range(count)]
    shares = divide_by_need(LIMIT, FLOOR, needs, holding)
    assert sum(shares) <= LIMIT + 1e-6
    if any(holding):
        assert sum(shares) == pytest.approx(LIMIT)
    assert min(shares) >= FLOOR
    if sum(max(need, FLOOR) for need in needs) <= LIMIT:
        assert all(share >= need - 1e-9 for share, need in zip(shares, needs, strict=True))


def test_the_level_gives_exactly_the_amount() -> None:
    assert find_level([1, 5, 9], 9) == 4
    assert find_level([3, 3], 2) == 1


def test_a_broker_gives_back_what_it_does_not_use() -> None:
    assert find_kept_share(Usage(100, 0, 500), FLOOR) == pytest.approx(100 * HEADROOM)
    assert find_kept_share(Usage(0, 0, 500), FLOOR) == FLOOR
    assert find_kept_share(Usage(600, 0, 500), FLOOR) == 500
    assert find_kept_share(Usage(100, 1, 500), FLOOR) == 500


def test_a_broker_that_holds_back_needs_more_than_it_has() -> None:
    assert find_need(Usage(100, 2, 100), FLOOR) == 165
    assert find_need(Usage(100, MET, 100), FLOOR) == pytest.approx(111)
    assert find_need(Usage(100, 400, 100), FLOOR) == pytest.approx(510)
    assert find_need(Usage(100, 400, 500), FLOOR) == pytest.approx(510)
    assert find_need(Usage(100, 0, 500), FLOOR) == pytest.approx(110)


def test_a_share_shrinks_at_once_and_grows_out_of_what_is_free() -> None:
    assert find_grant(50, 100, 0) == 50
    assert find_grant(150, 100, 30) == 130
    assert find_grant(150, 100, -30) == 100


def test_static_shares_follow_partitions() -> None:
    assert divide_by_partitions(LIMIT, [3, 1]) == [750, 250]
    assert divide_by_partitions(LIMIT, [0, 0]) == [500, 500]


def test_shares_decay_together_after_the_hold_and_never_exceed_the_limit() -> None:
    last, static = [900.0, 80.0, 20.0], [333.0, 333.0, 334.0]
    for silent_ms in range(0, HOLD_MS + 20_000, 250):
        # Brokers lose their master at moments up to two intervals apart.
        shares = [decay(a, b, silent_ms - 1000 * i, 1000) for i, (a, b) in enumerate(zip(last, static, strict=True))]
        assert sum(shares) <= 1000 + 1e-9
        if silent_ms <= HOLD_MS:
            assert shares == last
    assert decay(900, 333, HOLD_MS + DECAY_INTERVALS * 500, 1000) == pytest.approx(616.5)
    assert shares == static
