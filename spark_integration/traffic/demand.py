"""What the clients of an instance want to send: recorded figures, or made ones. Imports no pyspark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

SKEWED, BURSTY, MOVING, SURGING, RECORDED = "skewed", "bursty", "moving", "surging", "recorded"
KINDS = (SKEWED, BURSTY, MOVING, SURGING)
HOT_PART = 0.9
"""Part of the traffic that the hot broker has in skewed and moving traffic."""


@dataclass(frozen=True)
class Demand:
    """One instance's demand: ``bytes[second][broker]``, with the brokers counted from 0.

    ``moves`` are the seconds in which the hot broker changes, or a burst or surge begins; empty for recorded traffic.
    """

    instance: str
    kind: str
    limit: float
    partitions: Sequence[int]
    bytes: Sequence[Sequence[float]]
    moves: Sequence[int] = ()


def make_demand(number: int, brokers: int, seconds: int, seed: int) -> Demand:
    """Make the demand of one instance. It has partitions on 3 to all brokers, and demands half to one and a half times its limit."""
    rng = Random(seed * 1_000_003 + number)
    kind = KINDS[number % len(KINDS)]
    limit = round(1_000_000 * rng.lognormvariate(0, 1))
    used = sorted(rng.sample(range(brokers), rng.randint(3, min(brokers, 12))))
    level = limit * rng.uniform(0.5, 1.5)
    make = {SKEWED: _make_skewed, BURSTY: _make_bursty, MOVING: _make_moving, SURGING: _make_surging}[kind]
    parts, moves = make(rng, len(used), seconds)
    noisy = [[part * level * rng.uniform(0.8, 1.2) for part in row] for row in parts]
    return Demand(f"instance-{number}", kind, limit, [1] * len(used), noisy, moves)


def _make_skewed(rng: Random, count: int, seconds: int) -> tuple[list[list[float]], list[int]]:
    return [_skew(rng.randrange(count), count)] * seconds, []


def _skew(hot: int, count: int) -> list[float]:
    return [HOT_PART if broker == hot else (1 - HOT_PART) / (count - 1) for broker in range(count)]


def _make_moving(rng: Random, count: int, seconds: int) -> tuple[list[list[float]], list[int]]:
    hot, rows, moves = rng.randrange(count), list[list[float]](), list[int]()
    left = rng.randint(10, 20)
    for second in range(seconds):
        if not left:
            hot, left = (hot + rng.randrange(1, count)) % count, rng.randint(10, 20)
            moves.append(second)
        left -= 1
        rows.append(_skew(hot, count))
    return rows, moves


def _make_bursty(rng: Random, count: int, seconds: int) -> tuple[list[list[float]], list[int]]:
    """Let each broker send for 1 to 5 seconds and pause for 2 to 10; a burst is of the whole level."""
    rows = [[0.0] * count for _ in range(seconds)]
    moves = set()
    for broker in range(count):
        second = rng.randrange(10)
        while second < seconds:
            moves.add(second)
            length = rng.randint(1, 5)
            for sending in range(second, min(second + length, seconds)):
                rows[sending][broker] = 1.0
            second += length + rng.randint(2, 10)
    return rows, sorted(moves)


def _make_surging(rng: Random, count: int, seconds: int) -> tuple[list[list[float]], list[int]]:
    """Let all brokers want the whole level for 5 seconds, after 10 seconds of skew each."""
    calm, surge = [_skew(rng.randrange(count), count)] * 10, [[1.0] * count] * 5
    rows = (calm + surge) * (seconds // 15 + 1)
    return rows[:seconds], [second for second in range(seconds) if second and second % 15 in (0, 10)]


def read_demand(instance: str, rows: Iterable[tuple[str, int, float, float, int]]) -> Demand:
    """Build a demand of recorded rows: broker, second, bytes, limit and partitions. Seconds without a row are without traffic."""
    known = sorted(rows, key=lambda row: row[1])
    brokers = sorted({row[0] for row in known})
    first, last = known[0][1], known[-1][1]
    table = [[0.0] * len(brokers) for _ in range(last - first + 1)]
    partitions = [1] * len(brokers)
    for broker, second, size_bytes, _, count in known:
        table[second - first][brokers.index(broker)] += size_bytes
        partitions[brokers.index(broker)] = count
    return Demand(instance, RECORDED, known[-1][3], partitions, table)
