"""The division of an instance's traffic by what each broker uses: the default.

The limit is lent to brokers. Each live broker owns a small floor, so that the first requests of an idle instance pass. All above the
floors is free or lent, and never lent twice:

- a broker that uses less than its share gives the rest back, apart from some headroom, *before* it reports its use;
- the master lends only what is free, to brokers that hold clients back first;
- if brokers hold clients back and too little is free, the master fills up the brokers' needs from below (max-min fairness). A broker that
  gets less than it has reports the lower share the next time, and only then the difference is free.

So the shares of all brokers never add up to more than the limit, whatever report or answer is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

FLOOR_PART = 0.02
"""Part of the limit that is divided evenly over all live brokers as their floors."""
REMEMBERED_FLOORS = 4
"""Floors up to which a broker keeps what it used in the last seconds."""
HEADROOM = 1.1
"""What a broker keeps, as a multiple of what it uses: traffic varies from interval to interval."""
GROWTH = 1.25
"""The need of a broker that holds clients back, as a multiple of its share: clients that wait do not show what they would send."""
GROWTH_FLOORS = 4
"""Floors that such a broker needs in addition, so that it soon has a share worth multiplying."""
LENT_AHEAD = 0.5
"""Part of what nobody needs that is lent nevertheless, by need, while no clients wait."""
SATURATED = 0.8
"""Part of its share that a broker has used if its clients wait for more than one burst."""
MET = 1.0
"""What a broker reports as held back if clients had to wait, and nothing is missing any more."""


class Usage(NamedTuple):
    """What one broker reports of one direction of an instance's traffic.

    ``used`` is measured over most of an interval. ``held_back`` is above 0 if clients had to wait since the last report; it is what they have
    sent beyond the share, by the interval, or `MET`. ``share`` is the broker's at this moment.
    """

    used: float
    held_back: float
    share: float


def find_floor(limit: float, broker_count: int) -> float:
    """Return the share that each of the live brokers always has: the whole limit for a broker alone."""
    return limit if broker_count <= 1 else limit * FLOOR_PART / broker_count


def find_kept_share(usage: Usage, floor: float) -> float:
    """Return what a broker keeps of its share before it reports; it gives back the rest."""
    if usage.held_back > 0:
        return usage.share
    return min(usage.share, max(floor, usage.used * HEADROOM))


def find_need(usage: Usage, floor: float) -> float:
    """Return the share that would let a broker's clients send all they want, as far as it is known."""
    need = usage.used * HEADROOM + usage.held_back
    is_saturated = usage.held_back > MET and usage.used >= usage.share * SATURATED
    return max(need, usage.share * GROWTH + GROWTH_FLOORS * floor) if is_saturated else need


def divide_by_need(limit: float, floor: float, needs: Sequence[float], holding: Sequence[bool]) -> list[float]:
    """Divide a limit over brokers by their needs; each gets its floor at least.

    *limit* includes the floors of these brokers, and no more. *holding* says which hold clients back. What is left when all needs are met
    goes to those. If none does, one half goes by need, so that traffic can grow. The other half stays free: a broker on which traffic
    begins gets it with its first report.
    """
    needs = [need - floor if need > floor else 0.0 for need in needs]
    lendable = max(limit - floor * len(needs), 0.0)
    total = sum(needs)
    if total > lendable:
        level = find_level(needs, lendable)
        return [floor + need if need < level else floor + level for need in needs]
    spare = lendable - total
    if any(holding):
        weights = [need if holds else 0.0 for need, holds in zip(needs, holding, strict=True)]
        weight = sum(weights)
        if not weight:
            weights, weight = [float(holds) for holds in holding], float(sum(holding))
        return [floor + need + spare * part / weight for need, part in zip(needs, weights, strict=True)]
    factor = 1 + spare * LENT_AHEAD / total if total else 1.0
    return [floor + need * factor for need in needs]


def find_level(needs: Sequence[float], amount: float) -> float:
    """Return the level up to which needs of more than *amount* in all are met, so that exactly the amount is given."""
    left, count = amount, len(needs)
    for need in sorted(needs):
        if need * count >= left:
            return left / count
        left -= need
        count -= 1
    return max(needs)


def find_grant(target: float, kept: float, free: float) -> float:
    """Return a broker's new share on the way to its *target*: less at once, more only out of what is *free*."""
    return target if target <= kept else min(target, kept + max(free, 0.0))
