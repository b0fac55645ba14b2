"""``python -m bench.testing``: how long brokers of tests take, in this process and in others; prints a table.

Figures are medians, except those of the tests and of the first group of a JVM, which run once. The machine should do nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

import kafkacompat.testing
from bench.machine import describe_machine
from compat_tests.java_tools import compile_java, run_java
from kafkacompat.testing import RunningBroker

COLD = """
import time
begin = time.perf_counter()
import kafkacompat.testing
kafka = kafkacompat.testing.broker()
print(time.perf_counter() - begin)
kafka.stop()
"""
PLUGIN = """
import time, pytest
begin = time.perf_counter()
import kafkacompat.testing.plugin
print(time.perf_counter() - begin)
"""
CONFTEST = """
import json, pathlib, resource
seconds = dict.fromkeys(("setup", "call", "teardown"), 0.0)

def pytest_runtest_logreport(report):
    seconds[report.when] += report.duration

def pytest_sessionfinish():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    figures = {**seconds, "memory_mb": pages * resource.getpagesize() / 1e6}
    pathlib.Path("figures.json").write_text(json.dumps(figures))
"""
TESTS = """
import pytest

@pytest.mark.parametrize("number", range({tests}))
def test_it(kafka, number):
    pass
"""
TIMEOUT_S = 600
NEW_GROUPS = Path(__file__).resolve().parent / "java" / "NewGroups.java"
JAVA_SETTINGS = (
    ("group.protocol=classic",),
    ("group.protocol=consumer",),
    # Until it has its partitions and their positions, this protocol's poll waits in steps of retry.backoff.ms, 100 ms by default.
    ("group.protocol=consumer", "retry.backoff.ms=10"),
)
"""Settings with which the Java client is timed."""
PAGE = Path(__file__).resolve().parent.parent / "docs/testing/fixtures.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
ENV = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The first run compiles the modules, as an installation does, and is not counted."""


class Figure(NamedTuple):
    """A measured figure and the bound that the project sets for it, as texts."""

    name: str
    value: str
    bound: str


def measure_cold(runs: int) -> list[Figure]:
    """Import and start a broker, and import the plugin, in interpreters of their own."""
    return [
        Figure("import and ready broker, cold interpreter", f"{_time_program(COLD, runs):.3f} s", "0.4 s"),
        Figure("import of the plugin, beside pytest", f"{_time_program(PLUGIN, runs) * 1000:.1f} ms", "-"),
    ]


def _time_program(program: str, runs: int) -> float:
    seconds = [
        float(
            subprocess.run(
                [sys.executable, "-c", program], check=True, capture_output=True, timeout=TIMEOUT_S, env=ENV
            ).stdout
        )
        for _ in range(runs + 1)
    ][1:]
    return median(seconds)


def measure_warm(runs: int) -> list[Figure]:
    """Start and stop brokers, and clusters of three, in this process."""
    starts, stops, clusters = [], [], []
    for _ in range(runs):
        begin = time.perf_counter()
        kafka = kafkacompat.testing.broker()
        started = time.perf_counter()
        kafka.stop()
        starts.append(started - begin)
        stops.append(time.perf_counter() - started)
    for _ in range(runs):
        begin = time.perf_counter()
        with kafkacompat.testing.cluster(3):
            clusters.append(time.perf_counter() - begin)
    return [
        Figure("ready broker, imported", f"{median(starts) * 1000:.1f} ms", "20 ms"),
        Figure("its stop", f"{median(stops) * 1000:.1f} ms", "-"),
        Figure("ready cluster of three, imported", f"{median(clusters) * 1000:.0f} ms", "-"),
    ]


def measure_tests(tests: int) -> list[Figure]:
    """Let pytest run tests with an empty broker each."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "conftest.py").write_text(CONFTEST)
        Path(folder, "test_it.py").write_text(TESTS.format(tests=tests))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "kafkacompat.testing.plugin",
            "-p",
            "no:cacheprovider",
            ".",
        ]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=TIMEOUT_S, env=ENV)
        figures = json.loads(Path(folder, "figures.json").read_text())
    return [
        Figure(f"fixture time of {tests} tests", f"{figures['setup'] + figures['teardown']:.1f} s", "25 s for 1,000"),
        Figure(f"memory after {tests} tests", f"{figures['memory_mb']:.0f} MB", "150 MB"),
    ]


def time_librdkafka(kafka: RunningBroker, group: str) -> float:
    """Return the seconds until a new group has read one record."""
    from confluent_kafka import Consumer

    begin = time.perf_counter()
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(config)
    consumer.subscribe(["t"])
    assert consumer.poll(30) is not None
    end = time.perf_counter()
    consumer.close()
    return end - begin


def time_kafka_python(kafka: RunningBroker, group: str) -> float:
    """Return the seconds until a new group has read one record."""
    from kafka import KafkaConsumer

    begin = time.perf_counter()
    consumer = KafkaConsumer(
        "t", bootstrap_servers=kafka.bootstrap_servers, group_id=group, auto_offset_reset="earliest"
    )
    next(consumer)
    end = time.perf_counter()
    consumer.close()
    return end - begin


def measure_first_record(name: str, time_group: Callable[[RunningBroker, str], float], runs: int) -> Figure:
    """Time new groups until their first record. The first group warms up, and is not counted."""
    with kafkacompat.testing.broker() as kafka:
        kafka.produce("t", ["a"])
        seconds = [time_group(kafka, f"group-{run}") for run in range(runs + 1)]
    return Figure(f"first record of a new group, {name}", f"{median(seconds[1:]) * 1000:.0f} ms", "220 ms")


def time_java(kafka: RunningBroker, settings: Sequence[str], groups: int) -> list[float]:
    """Return the milliseconds until each of some new groups has read one record, all in one JVM."""
    arguments = ["t", str(groups), f"bootstrap.servers={kafka.bootstrap_servers}", *settings]
    done = run_java("NewGroups", arguments, extra_class_path=[compile_java(NEW_GROUPS)])
    return [float(line) for line in done.stdout.split()]


def measure_first_record_of_java(settings: Sequence[str], runs: int) -> list[Figure]:
    """Time new groups until their first record. The first group loads the client's classes, and has a figure of its own."""
    with kafkacompat.testing.broker() as kafka:
        kafka.produce("t", ["a"])
        first, *following = time_java(kafka, settings, runs + 1)
    name = f"first record of a new group, Java, {', '.join(settings)}"
    return [
        Figure(name, f"{median(following):.0f} ms", "150 ms"),
        Figure(f"{name}, first of its JVM", f"{first:.0f} ms", "-"),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.testing", description=__doc__)
    parser.add_argument("--runs", type=int, default=9, help="runs of each figure (9)")
    parser.add_argument("--tests", type=int, default=1000, help="tests with a broker each (1000)")
    parser.add_argument("--write", action="store_true", help="write the table into docs/testing/fixtures.md")
    options = parser.parse_args(arguments)
    table = Table("figure", "measured", "bound")
    figures = [*measure_cold(options.runs), *measure_warm(options.runs), *measure_tests(options.tests)]
    figures.append(measure_first_record("librdkafka", time_librdkafka, options.runs))
    figures.append(measure_first_record("kafka-python", time_kafka_python, options.runs))
    for settings in JAVA_SETTINGS:
        figures += measure_first_record_of_java(settings, options.runs)
    for figure in figures:
        table.add_row(*figure)
    Console().print(table)
    if options.write:
        write_page(figures)


def write_page(figures: Sequence[Figure]) -> None:
    """Replace the table of the page."""
    machine = describe_machine()
    heading = f"{machine['processor']}, Python {machine['Python']}, {machine['date']}"
    rows = "".join(f"| {figure.name} | {figure.value} | {figure.bound} |\n" for figure in figures)
    table = f"{BEGIN}\n\n| {heading} | measured | bound |\n|---|---|---|\n{rows}\n{END}"
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    PAGE.write_text(before + table + after)


if __name__ == "__main__":
    main()
