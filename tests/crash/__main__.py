"""``python -m tests.crash``: random lives of a node that crashes at every operation of its file system, in several ways."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console
from rich.progress import track

from tests.crash.points import WAYS, CrashPoints, Tally

SHOWN = 20


def main(arguments: Sequence[str]) -> int:
    """Live, crash, and look; return 1 when anything is not as it was promised."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--lives", type=int, default=8, help="how many (8)")
    parser.add_argument("--seed", type=int, default=0, help="the first life's seed (0)")
    parser.add_argument("--steps", type=int, default=150, help="how long each is (150)")
    parser.add_argument("--point", type=int, help="crash only there, in the life of --seed")
    parser.add_argument("--way", choices=WAYS, default="killed", help="what is left of it")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    if chosen.point is not None:
        tally = CrashPoints(chosen.seed, chosen.steps).crash_once(chosen.point, chosen.way)
    else:
        tally = live_lives(range(chosen.seed, chosen.seed + chosen.lives), chosen.steps)
    print_tally(tally)
    return int(bool(tally.anomalies))


def live_lives(seeds: Sequence[int], steps: int) -> Tally:
    """Live a life for each seed, as many at a time as there are processors."""
    tally = Tally()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        lives = [pool.submit(one_life, seed, steps) for seed in seeds]
        for life in track(lives, "crash points", console=Console(stderr=True)):
            tally.add(life.result())
    return tally


def one_life(seed: int, steps: int) -> Tally:
    """Crash everywhere in one life."""
    logging.disable(logging.CRITICAL)
    return CrashPoints(seed, steps).all()


def print_tally(tally: Tally) -> None:
    """Print the numbers of crash points and states of the disk, and the anomalies."""
    for crash, problem in tally.anomalies[:SHOWN]:
        print(f"{crash.command()}: {problem[:500]}")
    operations = ", ".join(f"{count:,} {name}" for name, count in tally.operations.most_common())
    print(f"{tally.points:,} crash points ({operations})")
    print(f"{tally.states:,} states of the disk, {len(tally.anomalies):,} anomalies")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
