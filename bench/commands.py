"""Measures the commands of kafkacompat as processes against one broker; each time includes the start of the process.

python -m bench.commands [--runs 10]                        commands for any cluster, in ms
python -m bench.commands --records 1000000 [--runs 5]       `consume` and `produce` beside kcat, with records of 100 bytes
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from compat_tests.brokers import ROOT, KafkacompatBroker
from kafkacompat.cli.remote.options import BOOTSTRAP_VARIABLE

OURS = (sys.executable, "-m", "kafkacompat")
RECORD_BYTES = 100
TOPIC = "measured"
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
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, help="measure consume and produce with this many records")
    parser.add_argument("--runs", type=int, help="by default 10, with records 5")
    options = parser.parse_args()
    if options.records and shutil.which("kcat") is None:
        raise SystemExit("kcat is not installed: apt install kcat")
    with tempfile.TemporaryDirectory() as folder, KafkacompatBroker(Path(folder) / "node") as broker:
        os.environ[BOOTSTRAP_VARIABLE] = broker.bootstrap
        if options.records:
            fill_topic(broker.bootstrap, options.records)
            print_times(list_data_commands(broker.bootstrap, folder), options.runs or 5)
        else:
            measure([*OURS, "topics", "create", *(f"topic-{number}" for number in range(TOPICS))], 1)
            print_times({" ".join(words): [*OURS, *words] for words in COMMANDS}, options.runs or 10)


def list_data_commands(bootstrap: str, folder: str) -> Mapping[str, Sequence[str]]:
    """Return the commands for records by name; those that write read what the first one has written."""
    lines, output = f"{folder}/lines", f"{folder}/output"
    reading = f'kcat -b {bootstrap} -C -t {TOPIC} -e -q > "{lines}"'
    return {
        "kcat -C": ["sh", "-c", reading],
        "kafkacompat consume": [*OURS, "consume", TOPIC, "--output", output],
        "kafkacompat consume --json": [*OURS, "consume", TOPIC, "--json", "--output", output],
        "kcat -P": ["kcat", "-b", bootstrap, "-P", "-t", "written", "-l", lines],
        "kafkacompat produce": [*OURS, "produce", "written", lines],
    }


def fill_topic(bootstrap: str, count: int) -> None:
    """Produce the records that are read."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": count})
    for number in range(count):
        producer.produce(TOPIC, b"%0*d" % (RECORD_BYTES, number))
    if producer.flush(120):
        raise SystemExit("the broker does not accept the records")


def print_times(commands: Mapping[str, Sequence[str]], runs: int) -> None:
    """Run the commands and print a table of their times."""
    table = Table("command", "wall ms", "CPU ms", caption=f"medians of {runs} runs")
    for name, command in commands.items():
        table.add_row(name, *(f"{time_s * 1e3:,.0f}" for time_s in measure(command, runs)))
    Console().print(table)


def measure(command: Sequence[str], runs: int) -> tuple[float, float]:
    """Run a command several times; return the medians of its time and of its processor time, in seconds."""
    walls, processors, quiet = [], [], subprocess.DEVNULL
    for _ in range(runs):
        before, begin_s = os.times(), time.perf_counter()
        subprocess.run(command, check=True, stdout=quiet, stderr=quiet, env={**os.environ, "PYTHONPATH": str(ROOT)})
        walls.append(time.perf_counter() - begin_s)
        after = os.times()
        processors.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return median(walls), median(processors)


if __name__ == "__main__":
    main()
