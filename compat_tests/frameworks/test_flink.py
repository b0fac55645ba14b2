"""Flink in Java and in Python: a word count with an exactly-once sink, killed in the middle and restored from a checkpoint.

The words are counted again without Flink.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.frameworks.interruption import InterruptedJob
from compat_tests.frameworks.programme import (
    FOLDER,
    Programme,
    environment_with,
    python_of,
    serves_transactions,
    start_java,
)
from compat_tests.frameworks.reading import Read, Reader, by_key
from compat_tests.frameworks.words import WORDS_PER_LINE, count_words, make_lines
from spark_integration.runtime.maven import jar_folder

pytestmark = pytest.mark.frameworks

POM = FOLDER / "flink" / "pom.xml"
SOURCE = FOLDER / "java" / "FlinkJob.java"
# Flink's serializers look into the JDK's own classes.
JVM = tuple(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util", "net", "io"))
PYFLINK = "apache-flink==2.2.0"
PYTHON_JOB = FOLDER / "python" / "word_count_of_flink.py"
# PyFlink brings the other jars.
CONNECTOR_JARS = ("flink-connector-kafka-*.jar", "kafka-clients-*.jar")
PARTITIONS = 3
LINES = 2000
# On a busy machine PyFlink takes a minute until it has started, and writes no count before.
DONE_SECONDS = 300

Counts = dict[str, list[str]]
Begin = Callable[[list[str]], Programme]


def test_word_count(broker: Broker, name: str, tmp_path: Path) -> None:
    def begin(checkpoint: list[str]) -> Programme:
        arguments = [broker.bootstrap, name, checkpoints_of(tmp_path).as_uri(), *checkpoint]
        return start_java("FlinkJob", arguments, tmp_path / "log", source=SOURCE, pom=POM, heap="768m", jvm=JVM)

    check_word_count(broker, name, tmp_path, begin, by_key)


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_word_count_in_python(broker: Broker, name: str, mode: str, tmp_path: Path) -> None:
    # Pip's cache needs no second copy of 400 MB.
    command = [str(python_of(sys.executable, [PYFLINK], "--no-cache-dir")), str(PYTHON_JOB)]
    jars = [jar.as_uri() for pattern in CONNECTOR_JARS for jar in jar_folder(POM).glob(pattern)]
    given = {"BOOTSTRAP": broker.bootstrap, "NAME": name, "MODE": mode, "JARS": ";".join(jars)}
    given |= {"CHECKPOINTS": checkpoints_of(tmp_path).as_uri(), "FLINK_LOG_DIR": str(tmp_path)}
    given |= {"JVM_ARGS": "-Xmx768m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"}

    def begin(checkpoint: list[str]) -> Programme:
        return Programme(command, tmp_path / "log", environment_with({**given, "RESTORE": "".join(checkpoint)}))

    check_word_count(broker, name, tmp_path, begin, by_word, partitions=1)


def check_word_count(
    broker: Broker,
    name: str,
    folder: Path,
    begin: Begin,
    count: Callable[[list[Read]], Counts],
    partitions: int = PARTITIONS,
) -> None:
    """Run a job that *begin* starts from a checkpoint, if there is one; *partitions* are those of its output."""
    if not serves_transactions(broker):
        pytest.skip("the broker does not serve transactions yet")
    create_topic(broker, name, PARTITIONS)
    create_topic(broker, f"{name}-out", partitions)
    checkpoints = checkpoints_of(folder)
    checkpoints.mkdir()
    lines = make_lines(LINES, 4)
    produce(broker, name, lines[: LINES // 2])
    with closing(Reader(broker, f"{name}-out", partitions)) as reader:
        job = InterruptedJob(
            lambda: begin(newest_checkpoint(checkpoints)), Programme.kill, at_work=True, timeout_seconds=DONE_SECONDS
        )
        job.run(reader, LINES * WORDS_PER_LINE, lambda: produce(broker, name, lines[LINES // 2 :]))
        counts = count(reader.records)
    assert counts == count_words(lines)
    assert newest_checkpoint(checkpoints)


def checkpoints_of(folder: Path) -> Path:
    """The folder of a job's checkpoints."""
    return folder / "checkpoints"


def by_word(records: Sequence[Read]) -> Counts:
    """The counts of each word in the order in which they were written, from values such as "word1 5"."""
    counts: Counts = {}
    for record in records:
        word, number = record.texts[1].split()
        counts.setdefault(word, []).append(number)
    return counts


def newest_checkpoint(folder: Path) -> list[str]:
    """The URI of the newest complete checkpoint, or nothing before the first."""
    complete = sorted(folder.glob("*/chk-*/_metadata"), key=lambda path: path.stat().st_mtime_ns)
    return [path.parent.as_uri() for path in complete[-1:]]
