"""The division of an instance's traffic by the five rules of the article on CKafka (chapter 4.3).

1. When the instance's storage is full, producing is blocked and consuming passes (by `tenancy.capacity`, for both algorithms).
2. F is the traffic that a broker is given by the number of the instance's partitions on it.
3. While the traffic of every broker is below 80 % of its F, each gets F.
4. Otherwise P is the part of the instance's traffic that each broker measures.
5. Pmax and Pmin are the largest and the smallest P. If Pmin / Pmax is at least 80 %, each broker gets its P. Otherwise the largest gets its
   P, and each other min(P + 10 % * Pmax, Pmax).

Where the article leaves something open, this module chooses:

- P is a ratio in rule 4, and Pmax and Pmin are traffic in rule 5. All are ratios here: Pmin / Pmax is the same for both, and
  a broker's share is its ratio of the limit.
- "Below 80 %" is meant strictly. A broker with neither partitions nor traffic is left out of the rules, and its share is 0: otherwise it
  would have no traffic below 80 % of nothing, and rule 3 could never apply.
- Without any partitions F is divided evenly.
- Several brokers may have Pmax: each gets its P.

By rule 5 the shares may add up to more than the limit: 0.8, 0.1 and 0.1 become 0.8, 0.18 and 0.18, which is 1.16. The article does not
scale them down, and neither does this module: an instance whose traffic follows its shares exceeds its limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacompat.tenancy.traffic.static import divide_by_partitions

CALM_RATIO = 0.8
"""Part of F below which a broker's traffic leaves the static division in force."""
BALANCED_RATIO = 0.8
"""Pmin / Pmax from which on brokers count as balanced."""
EXTRA_RATIO = 0.1
"""Part of Pmax that the smaller brokers get in addition, so that they can grow."""


def divide_by_article(limit: float, partitions: Sequence[int], traffic: Sequence[float]) -> list[float]:
    """Divide a limit over brokers, given each one's partitions and measured traffic; the shares may exceed the limit."""
    static = divide_by_partitions(limit, partitions)
    total = sum(traffic)
    taking_part = [share > 0 or used > 0 for share, used in zip(static, traffic, strict=True)]
    is_calm = all(
        used < CALM_RATIO * share for share, used, counts in zip(static, traffic, taking_part, strict=True) if counts
    )
    if is_calm or not total:
        return static
    ratios = [used / total for used in traffic]
    return [
        limit * ratio if counts else 0.0
        for ratio, counts in zip(_adjust_ratios(ratios, taking_part), taking_part, strict=True)
    ]


def _adjust_ratios(ratios: Sequence[float], taking_part: Sequence[bool]) -> Sequence[float]:
    """Apply rule 5."""
    counted = [ratio for ratio, counts in zip(ratios, taking_part, strict=True) if counts]
    largest, smallest = max(counted), min(counted)
    if smallest / largest >= BALANCED_RATIO:
        return ratios
    return [ratio if ratio == largest else min(ratio + EXTRA_RATIO * largest, largest) for ratio in ratios]
