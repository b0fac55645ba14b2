"""Shares by partitions, which need no measurements; shares decay to them while no traffic master answers."""

from __future__ import annotations

from collections.abc import Sequence

HOLD_MS = 20_000
"""Time that a broker keeps its last shares without an answer of a master.

It is longer than ZooKeeper's session timeout of 18 s, after which another broker is elected: an election changes no share.
"""
DECAY_INTERVALS = 10
"""Intervals in which a share goes from its last value to the static one, after the hold."""
RISE_DELAY_INTERVALS = 2
"""Intervals by which a share that grows lags behind one that shrinks: brokers do not lose their master at the same moment."""
DECAYED_INTERVALS = DECAY_INTERVALS + RISE_DELAY_INTERVALS + 2
"""Intervals after the hold in which a broker has reached its static shares, seen by another one."""


def divide_by_partitions(limit: float, partitions: Sequence[int]) -> list[float]:
    """Divide a limit over brokers by the partitions that the instance has on each; evenly if it has none."""
    total = sum(partitions)
    if not total:
        return [limit / len(partitions)] * len(partitions)
    return [limit * count / total for count in partitions]


def decay(last: float, static: float, silent_ms: float, interval_ms: float) -> float:
    """Return a broker's share *silent_ms* after the last answer of a master, between the *last* and the *static* one.

    The shares of all brokers add up to the limit at any time, as each goes the same part of its way. Shares that grow do so later.
    """
    late_ms = RISE_DELAY_INTERVALS * interval_ms if static > last else 0.0
    passed = (silent_ms - HOLD_MS - late_ms) / (DECAY_INTERVALS * interval_ms)
    return last + (static - last) * min(max(passed, 0.0), 1.0)
