"""Measure how long the commands for any cluster take, as processes on a broker of their own.

python -m bench.command_times        the median of ten runs of each, in ms, with the CPU time
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from compat_tests.brokers import ROOT, KafkacompatBroker

RUNS = 10
TOPICS = 100
COMMANDS = (
    ("--help",),
    ("topics", "list"),
    ("topics", "list", "--json"),
    ("topics", "describe", "topic-0"),
    ("groups", "list"),
    ("configs", "describe", "brokers", "1"),
    ("status",),
)


def run_command(words: tuple[str, ...], bootstrap: str) -> tuple[float, float]:
    """Run a command once; return its wall-clock and CPU times in ms."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KAFKACOMPAT_BOOTSTRAP_SERVER": bootstrap}
    before, begun = os.times(), time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "kafkacompat", *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    wall_s, after = time.monotonic() - begun, os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return wall_s * 1e3, cpu_s * 1e3


def main() -> None:
    """Print a table of the times."""
    table = Table("command", "wall ms", "CPU ms")
    with tempfile.TemporaryDirectory() as folder, KafkacompatBroker(Path(folder) / "node") as broker:
        run_command(("topics", "create", *(f"topic-{number}" for number in range(TOPICS))), broker.bootstrap)
        for words in COMMANDS:
            times = [run_command(words, broker.bootstrap) for _ in range(RUNS)]
            table.add_row(" ".join(words), *(f"{median(column):.0f}" for column in zip(*times, strict=True)))
    Console().print(table)


if __name__ == "__main__":
    main()
