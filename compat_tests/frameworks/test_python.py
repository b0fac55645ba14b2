"""Stream processing in Python: a word count of Faust and of Quix Streams, stopped in the middle, then counted again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.frameworks.programme import FOLDER, Programme, environment_with, python_of, serves_transactions
from compat_tests.frameworks.reading import Reader, by_key
from compat_tests.frameworks.words import WORDS_PER_LINE, count_words, make_lines

pytestmark = pytest.mark.frameworks

FAUST = "faust-streaming==0.15.3"
QUIX = "quixstreams==3.28.1"
PARTITIONS = 3
LINES = 1000
WORDS = LINES * WORDS_PER_LINE
DONE_SECONDS = 150
READY = "[^Worker]: Ready"

Start = Callable[..., Programme]


@pytest.fixture
def start(broker: Broker, name: str, tmp_path: Path) -> Iterator[Start]:
    """Start a programme with a package; none is left running."""
    started: list[Programme] = []

    def begin(package: str, script: str, *arguments: str, **environment: str) -> Programme:
        given = {"BOOTSTRAP": broker.bootstrap, "NAME": name, "PARTITIONS": str(PARTITIONS)}
        given |= {"STATE": str(tmp_path / "state"), **environment}
        command = [str(python_of(sys.executable, [package])), str(FOLDER / "python" / script), *arguments]
        started.append(Programme(command, tmp_path / "log", environment_with(given)))
        return started[-1]

    yield begin
    for programme in started:
        programme.kill()


def run_stopped(
    broker: Broker, name: str, begin: Callable[[], Programme], stop: Callable[[Programme], object], after: int
) -> None:
    """Count the words of half of the lines, stop after *stop* counts, count all, and compare with a count by hand."""
    lines = make_lines(LINES, 3)
    with closing(Reader(broker, f"{name}-out", PARTITIONS)) as reader:
        with begin() as first:
            produce(broker, name, lines[: LINES // 2])
            first.until(lambda: len(reader.read()) >= after, DONE_SECONDS)
            stop(first)
        assert len(reader.read()) < WORDS
        with begin() as second:
            produce(broker, name, lines[LINES // 2 :])
            second.until(lambda: len(reader.read()) >= WORDS, DONE_SECONDS)
            second.stop()
        assert by_key(reader.read()) == count_words(lines)


def test_faust(broker: Broker, name: str, start: Start, tmp_path: Path) -> None:
    for topic in (name, f"{name}-words", f"{name}-out"):
        create_topic(broker, topic, PARTITIONS)
    arguments = ("--datadir", str(tmp_path / "data"), "worker", "--loglevel=info")
    starts = count(1)

    def begin() -> Programme:
        worker, number = start(FAUST, "word_count_of_faust.py", *arguments), next(starts)
        # A worker that starts again loses some of the records that wait for it, on Apache Kafka too.
        worker.until(lambda: worker.log.count(READY) == number)
        return worker

    # It promises to read every line at least once; it is stopped between two of them.
    run_stopped(broker, name, begin, Programme.stop, WORDS // 2)


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_quix_streams(broker: Broker, name: str, start: Start, guarantee: str) -> None:
    exactly = guarantee == "exactly-once"
    if exactly and not serves_transactions(broker):
        pytest.skip("the broker does not serve transactions yet")
    for topic in (name, f"{name}-out"):
        create_topic(broker, topic, PARTITIONS)

    def begin() -> Programme:
        return start(QUIX, "word_count_of_quix.py", GUARANTEE=guarantee)

    run_stopped(broker, name, begin, Programme.kill if exactly else Programme.stop, WORDS // 10)
