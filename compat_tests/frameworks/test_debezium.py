"""Debezium's embedded engine: the lines of a growing file go to a topic; it is killed and goes on at its position."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.frameworks.interruption import STOPPED, write_before
from compat_tests.frameworks.programme import FOLDER, Programme, start_java
from compat_tests.frameworks.reading import Reader

pytestmark = pytest.mark.frameworks

POM = FOLDER / "debezium" / "pom.xml"
SOURCE = FOLDER / "java" / "DebeziumJob.java"
LINES = 3000
LINES_PER_WRITE = 20


def test_embedded_engine(broker: Broker, name: str, tmp_path: Path) -> None:
    create_topic(broker, name)
    file = tmp_path / "lines"
    file.touch()
    chunks = iter(range(0, LINES, LINES_PER_WRITE))

    def append_lines(first: int) -> None:
        with file.open("a") as out:
            out.writelines(f"{number}\n" for number in range(first, first + LINES_PER_WRITE))

    def begin() -> Programme:
        arguments = [broker.bootstrap, name, str(file)]
        return start_java("DebeziumJob", arguments, tmp_path / "log", source=SOURCE, pom=POM)

    with closing(Reader(broker, name, 1)) as reader:
        with begin() as first:
            first.until(write_before(lambda: len(reader.read()) >= LINES // 3, chunks, append_lines))
            first.kill()
        with begin() as second:
            second.until(write_before(lambda: numbers_of(reader)[-1] == LINES - 1, chunks, append_lines))
            with closing(Reader(broker, f"{name}-offsets", 1)) as offsets:
                second.until(lambda: stored_position(offsets) == file.stat().st_size)
            assert second.stop() in STOPPED, second.log
        check_resumed(numbers_of(reader))


def numbers_of(reader: Reader) -> list[int]:
    """The lines written so far; every line is a number."""
    return [int(record.texts[1]) for record in reader.read()]


def stored_position(offsets: Reader) -> int:
    """The position in the file that the engine stored last."""
    records = offsets.read()
    position: int = json.loads(records[-1].texts[1])["position"] if records else 0
    return position


def check_resumed(numbers: Sequence[int]) -> None:
    """Check that all lines are there in order; after the kill, lines may repeat from one place, but not from the first line."""
    breaks = [(before, after) for before, after in pairwise(numbers) if after != before + 1]
    assert (numbers[0], numbers[-1]) == (0, LINES - 1)
    assert len(breaks) <= 1, breaks
    for before, after in breaks:
        assert 0 < after <= before
