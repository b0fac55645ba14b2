"""Flink: a word count with an exactly-once sink, killed in the middle and restored from a checkpoint; counted again."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.frameworks.interruption import InterruptedJob
from compat_tests.frameworks.programme import FOLDER, Programme, serves_transactions, start_java
from compat_tests.frameworks.reading import Reader, by_key

pytestmark = pytest.mark.frameworks

POM = FOLDER / "flink" / "pom.xml"
SOURCE = FOLDER / "java" / "FlinkJob.java"
# Flink's serializers look into the JDK's own classes.
JVM = tuple(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util", "net", "io"))
PARTITIONS = 3
LINES = 2000
WORDS_PER_LINE = 4


def test_word_count(broker: Broker, name: str, tmp_path: Path) -> None:
    if not serves_transactions(broker):
        pytest.skip("the broker does not serve transactions yet")
    for topic in (name, f"{name}-out"):
        create_topic(broker, topic, PARTITIONS)
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()

    def begin() -> Programme:
        arguments = [broker.bootstrap, name, checkpoints.as_uri(), *newest_checkpoint(checkpoints)]
        return start_java("FlinkJob", arguments, tmp_path / "log", source=SOURCE, pom=POM, heap="768m", jvm=JVM)

    lines = make_lines()
    produce(broker, name, lines[: LINES // 2])
    with closing(Reader(broker, f"{name}-out", PARTITIONS)) as reader:
        job = InterruptedJob(begin, Programme.kill)
        job.run(reader, LINES * WORDS_PER_LINE, lambda: produce(broker, name, lines[LINES // 2 :]))
        counts = by_key(reader.records)
    wanted = Counter(word for line in lines for word in line.split())
    assert counts == {word: [str(number + 1) for number in range(total)] for word, total in wanted.items()}
    assert list(newest_checkpoint(checkpoints))


def make_lines() -> list[str]:
    chosen = random.Random(4)
    return [" ".join(f"word{chosen.randrange(100)}" for _ in range(WORDS_PER_LINE)) for _ in range(LINES)]


def newest_checkpoint(folder: Path) -> list[str]:
    """The URI of the newest complete checkpoint, or nothing before the first."""
    complete = sorted(folder.glob("*/chk-*/_metadata"), key=lambda path: path.stat().st_mtime_ns)
    return [path.parent.as_uri() for path in complete[-1:]]
