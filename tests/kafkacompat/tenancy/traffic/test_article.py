"""The rules of the article, word for word; the first one is that of full storage, in `tenancy.capacity`."""

from __future__ import annotations

import pytest

from kafkacompat.tenancy.traffic.article import divide_by_article

LIMIT = 1000.0


def divide(partitions: list[int], traffic: list[float]) -> list[float]:
    return [round(share, 6) for share in divide_by_article(LIMIT, partitions, traffic)]


@pytest.mark.parametrize("traffic", [[0, 0, 0], [399, 159, 239]])
def test_rules_2_and_3_calm_brokers_get_their_part_by_partitions(traffic: list[float]) -> None:
    assert divide([5, 2, 3], traffic) == [500, 200, 300]


def test_rule_3_at_80_percent_of_its_part_a_broker_is_not_calm() -> None:
    assert divide([5, 5], [400, 400]) == [500, 500]
    assert divide([5, 5], [400, 0]) == [1000, 100]


def test_rules_4_and_5a_balanced_brokers_get_what_they_measure() -> None:
    assert divide([1, 1, 1], [500, 450, 400]) == [370.37037, 333.333333, 296.296296]


def test_rule_5b_smaller_brokers_get_a_tenth_of_the_largest_in_addition() -> None:
    assert divide([1, 1, 1], [800, 100, 100]) == [800, 180, 180]


def test_rule_5b_no_broker_gets_more_than_the_largest() -> None:
    assert divide([1, 1, 1, 1], [400, 390, 200, 10]) == [400, 400, 240, 50]


def test_shares_of_rule_5b_may_exceed_the_limit() -> None:
    assert sum(divide([1] * 20, [400] + [600 / 19] * 19)) == pytest.approx(1760)


def test_a_broker_without_partitions_and_traffic_is_left_out() -> None:
    assert divide([1, 0, 1], [100, 0, 100]) == [500, 0, 500]
    assert divide([1, 0, 1], [500, 0, 500]) == [500, 0, 500]
    assert divide([1, 0, 1], [500, 100, 500]) == [454.545455, 136.363636, 454.545455]


def test_without_partitions_each_broker_gets_the_same() -> None:
    assert divide([0, 0], [0, 0]) == [500, 500]


def test_equal_largest_brokers_get_what_they_measure() -> None:
    assert divide([1, 1, 1], [450, 450, 100]) == [450, 450, 145]
