"""Flume's Kafka channel: the lines of a growing file go through a topic into files, at least once; it is killed once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.frameworks.interruption import STOPPED, split, write_before
from compat_tests.frameworks.programme import FOLDER, START_SECONDS, Programme, start_java, write_properties
from compat_tests.frameworks.reading import Reader, count_committed

pytestmark = pytest.mark.frameworks

POM = FOLDER / "flume" / "pom.xml"
PARTITIONS = 3
LINES = 5000
LINES_PER_WRITE = 100
# A sink's batch fits into its buffer of 8 KiB, so that a kill never cuts a line.
LINES_PER_BATCH = 50


def test_kafka_channel(broker: Broker, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, PARTITIONS)
    source, sink = tmp_path / "lines", tmp_path / "sink"
    source.touch()
    sink.mkdir()
    properties = write_properties(tmp_path / "agent.properties", make_properties(broker, name, source, sink))
    lines = [f"line {number:05}" for number in range(LINES)]
    early, late = lines[: LINES * 2 // 3], lines[LINES * 2 // 3 :]

    def begin() -> Programme:
        arguments = ["-n", "agent", "-f", str(properties), "--no-reload-conf"]
        return start_java("org.apache.flume.node.Application", arguments, tmp_path / "log", pom=POM)

    def append_lines(chunk: Sequence[str]) -> None:
        with source.open("a") as file:
            file.writelines(f"{line}\n" for line in chunk)

    with closing(Reader(broker, name, PARTITIONS)) as topic:
        with begin() as first:
            chunks = split(early, LINES_PER_WRITE)
            append_lines(next(chunks))
            # The source stores its position five seconds after its start for the first time.
            first.until(lambda: stored_position(source) > 0, START_SECONDS)
            first.until(write_before(lambda: len(read_lines(sink)) >= LINES // 3, chunks, append_lines))
            first.kill()
        before, in_topic_before = len(read_lines(sink)), len(topic.read())
        for chunk in (*chunks, late):
            append_lines(chunk)
        with begin() as second:
            second.until(lambda: set(read_lines(sink)) == set(lines), START_SECONDS)
            second.until(lambda: count_committed(broker, name, name, PARTITIONS) == len(topic.read()))
            assert second.stop() in STOPPED, second.log
        in_topic = [record.texts[1] for record in topic.read()]
    written = read_lines(sink)
    assert set(in_topic) == set(written) == set(lines)
    print(f"lines repeated: {len(in_topic) - LINES} in the topic, {len(written) - LINES} in the files")
    # Only lines whose position or offset was not yet stored at the kill come again.
    assert len(in_topic) < LINES + in_topic_before
    assert len(written) < LINES + before


def make_properties(broker: Broker, name: str, source: Path, sink: Path) -> dict[str, str]:
    """The settings of an agent with one source, one channel and one sink."""
    components = {
        "sources.lines": {
            "type": "TAILDIR",
            "channels": "kafka",
            "filegroups": "all",
            "filegroups.all": str(source),
            "positionFile": str(position_file(source)),
            "writePosInterval": "200",
            "batchSize": str(LINES_PER_BATCH),
        },
        "channels.kafka": {
            "type": "org.apache.flume.channel.kafka.KafkaChannel",
            "kafka.bootstrap.servers": broker.bootstrap,
            "kafka.topic": name,
            "kafka.consumer.group.id": name,
            # The killed member's partitions are reassigned after six seconds.
            "kafka.consumer.session.timeout.ms": "6000",
            "kafka.consumer.heartbeat.interval.ms": "1000",
            # Values are the lines themselves, so that the test can read the topic.
            "parseAsFlumeEvent": "false",
            "migrateZookeeperOffsets": "false",
        },
        "sinks.files": {
            "type": "file_roll",
            "channel": "kafka",
            "sink.directory": str(sink),
            "sink.rollInterval": "0",
            "sink.batchSize": str(LINES_PER_BATCH),
        },
    }
    names = {"sources": "lines", "channels": "kafka", "sinks": "files"}
    settings = {f"{component}.{key}": value for component, keys in components.items() for key, value in keys.items()}
    return {f"agent.{key}": value for key, value in {**names, **settings}.items()}


def position_file(source: Path) -> Path:
    """The file in which the agent's source stores its position."""
    return source.with_name("position.json")


def stored_position(source: Path) -> int:
    """Return the position in the growing file that the agent's source has stored; 0 before the first time."""
    try:
        positions = json.loads(position_file(source).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return 0
    return sum(entry["pos"] for entry in positions)


def read_lines(folder: Path) -> list[str]:
    """Return the lines of all files that the sink has written."""
    return [line for path in folder.iterdir() for line in path.read_text().splitlines()]
