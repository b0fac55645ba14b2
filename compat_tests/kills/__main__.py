"""``python -m compat_tests.kills``: kill the broker at random moments under load, at both levels of durability."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from compat_tests.kills.run import LEVELS, run

SHOWN = 20


def main(arguments: Sequence[str]) -> int:
    """Kill, start, read; return 1 when anything is not as it was acknowledged."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how many, half of them at each level (50)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="decides the moments (the time)")
    chosen = parser.parse_args(arguments)
    anomalies = 0
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("kills", total=chosen.kills)
        for level in LEVELS:
            with tempfile.TemporaryDirectory(prefix="kills-") as folder:
                kills = chosen.kills // len(LEVELS)
                verdict = run(Path(folder) / "node", level, kills, chosen.seed, lambda: progress.advance(task))
            anomalies += len(verdict.anomalies)
            for anomaly in verdict.anomalies[:SHOWN]:
                print(f"--seed {chosen.seed}, acks.after={level}: {anomaly}")
            counts = f"{verdict.kills} kills, {verdict.records:,} records read, {len(verdict.anomalies)} anomalies"
            print(f"kafkacompat.acks.after={level}: {counts}")
    return int(bool(anomalies))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
