"""``python -m bench.clock``: the real time that an advance of the clock of tests takes (docs/testing/clock.md)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from statistics import median

import kafkacompat.testing
from kafkacompat.testing.running import RunningKafka

HOURS = (1, 25, 24 * 30)
RUNS = 5


def measure(start: Callable[[], RunningKafka], hours: float) -> float:
    """Return the median of the seconds that advances of a broker with one topic take."""
    with start() as kafka:
        kafka.create_topic("t", 10)
        kafka.produce("t", [f"value {number}" for number in range(1000)])
        taken = []
        for _ in range(RUNS):
            begun = time.perf_counter()
            kafka.clock.advance(hours=hours)
            taken.append(time.perf_counter() - begun)
        return median(taken)


def main() -> None:
    """Measure, and print a table in Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        kinds: dict[str, Callable[[], RunningKafka]] = {
            "a broker in memory": kafkacompat.testing.broker,
            "a broker in a folder": lambda: kafkacompat.testing.broker(tempfile.mkdtemp(dir=folder)),
            "a cluster of three": lambda: kafkacompat.testing.cluster(3),
        }
        print("| | " + " | ".join(f"{hours} h" for hours in HOURS) + " |")
        print("|---|" + "---|" * len(HOURS))
        for kind, start in kinds.items():
            figures = " | ".join(f"{measure(start, hours):.2f} s" for hours in HOURS)
            print(f"| {kind} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
