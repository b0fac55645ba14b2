"""Measures `kafkacompat consume` and `produce` beside kcat: a million records of 100 bytes to and from a file.

    python -m bench.commands [--records 1000000] [--runs 5]

Each command is a process of its own against one broker, and its time includes its start.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from confluent_kafka import Producer

from compat_tests.brokers import ROOT, KafkacompatBroker

RECORD_BYTES = 100
TOPIC = "measured"


def fill_topic(bootstrap: str, count: int) -> None:
    """Produce the records that are read."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": count})
    for number in range(count):
        producer.produce(TOPIC, b"%0*d" % (RECORD_BYTES, number))
    if producer.flush(120):
        raise SystemExit("the broker does not accept the records")


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


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    if shutil.which("kcat") is None:
        raise SystemExit("kcat is not installed: apt install kcat")
    with tempfile.TemporaryDirectory() as folder, KafkacompatBroker(Path(folder) / "node") as broker:
        fill_topic(broker.bootstrap, options.records)
        lines, output = f"{folder}/lines", f"{folder}/output"
        ours = [sys.executable, "-m", "kafkacompat"]
        server = ["--bootstrap-server", broker.bootstrap]
        reading = f'kcat -b {broker.bootstrap} -C -t {TOPIC} -e -q > "{lines}"'
        commands: dict[str, list[str]] = {
            "kcat -C": ["sh", "-c", reading],
            "kafkacompat consume": [*ours, "consume", TOPIC, *server, "--output", output],
            "kafkacompat consume --json": [*ours, "consume", TOPIC, *server, "--json", "--output", output],
            "kcat -P": ["kcat", "-b", broker.bootstrap, "-P", "-t", "written", "-l", lines],
            "kafkacompat produce": [*ours, "produce", "written", *server, lines],
        }
        print(f"{options.records:,} records of {RECORD_BYTES} bytes, medians of {options.runs} runs")
        for name, command in commands.items():
            wall_s, processor_s = measure(command, options.runs)
            print(f"{name:28} {wall_s:7.2f} s {processor_s:7.2f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
