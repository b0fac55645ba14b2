"""The tutorial of docs/FLIGHTS.md, run as it is written except for the broker's address."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests.brokers import ROOT, Broker

TUTORIAL = ROOT / "docs" / "FLIGHTS.md"
ADDRESS = "127.0.0.1:9092"
FLIGHTS = "336,776"
PROGRAMS = {"kafkacompat": ["-m", "kafkacompat"], "python": []}
TIMEOUT_SECONDS = 300


class Step(NamedTuple):
    """A command or a program of the tutorial, and the output that the tutorial shows."""

    words: tuple[str, ...]
    lines: tuple[str, ...]


def list_steps(text: str) -> Iterator[Step]:
    """Return the steps of the tutorial, in order."""
    for kind, block in re.findall(r"^```(console|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if kind == "python":
            yield Step(("python", "-c", block), (f"{FLIGHTS} records, 0 of them different",))
        else:
            command, *lines = block.splitlines()
            yield Step(tuple(shlex.split(command.removeprefix("$ "))), tuple(line.strip() for line in lines))


def run_step(step: Step, folder: Path, address: str) -> list[str]:
    """Run a step; return the lines of its standard output."""
    program, *words = (word.replace(ADDRESS, address) for word in step.words)
    if words[-1].endswith("demo.produce"):  # which has the address as its default
        words += ["--bootstrap-server", address]
    command = [sys.executable, *PROGRAMS[program], *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return [line.strip() for line in done.stdout.splitlines()]


@pytest.mark.spark
def test_every_step_of_the_tutorial_prints_its_output(broker: Broker, tmp_path: Path) -> None:
    """Each step succeeds and prints its output; the last one compares the topics record by record."""
    steps = list(list_steps(TUTORIAL.read_text()))
    assert len(steps) == 7
    for step in steps:
        printed = run_step(step, tmp_path, broker.bootstrap)
        assert set(step.lines) <= set(printed), f"{step.words} printed {printed}"
    for report in ("before.html", "after.html"):
        assert "<html" in (tmp_path / report).read_text()
