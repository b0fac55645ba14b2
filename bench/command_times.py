"""Measure how long the commands for any cluster take, as processes on a broker of their own.

python -m bench.command_times        the median of ten runs of each, in ms, with the CPU time
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.commands import measure
from compat_tests.brokers import KafkacompatBroker
from kafkacompat.cli.remote.options import BOOTSTRAP_VARIABLE

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


def main() -> None:
    """Print a table of the times."""
    table = Table("command", "wall ms", "CPU ms")
    with tempfile.TemporaryDirectory() as folder, KafkacompatBroker(Path(folder) / "node") as broker:
        os.environ[BOOTSTRAP_VARIABLE] = broker.bootstrap
        program = [sys.executable, "-m", "kafkacompat"]
        measure([*program, "topics", "create", *(f"topic-{number}" for number in range(TOPICS))], 1)
        for words in COMMANDS:
            times_s = measure([*program, *words], RUNS)
            table.add_row(" ".join(words), *(f"{time_s * 1e3:.0f}" for time_s in times_s))
    Console().print(table)


if __name__ == "__main__":
    main()
