"""Topics and their copies, record by record: `mirror` and `replay` write exactly the records that they read."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from compat_tests.brokers import ROOT, Broker
from compat_tests.waiting import until
from spark_integration.mirror.pipeline import MirrorSummary, mirror
from spark_integration.queries.settings import StreamOptions
from spark_integration.topics.names import TargetNames

ORIGIN = "kafkacompat-origin-"
Header = tuple[str, "bytes | None"]
Content = tuple["bytes | None", "bytes | None", tuple[Header, ...]]
RUN_SECONDS = 600
# For producers: their queue holds all records of a test, however often it kills.
ANY_NUMBER: dict[str, Any] = {"queue.buffering.max.messages": 0}


class Record(NamedTuple):
    """A record; *headers* are its own, *origin* holds the added ones by their short names."""

    offset: int
    timestamp: int
    content: Content
    origin: dict[str, str]


def read_contents(broker: Broker, topic: str) -> dict[int, list[Record]]:
    """Return all committed records of a topic by partition, as librdkafka reads them."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"contents-of-{topic}",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    partitions = list(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    records: dict[int, list[Record]] = {partition: [] for partition in partitions}
    waiting = set(partitions)
    while waiting:
        message = consumer.poll(30)
        assert message is not None, f"partitions {waiting} of {topic} do not end"
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            waiting.discard(message.partition())
        else:
            records[message.partition()].append(_as_record(message))
    consumer.close()
    return records


def _as_record(message: Any) -> Record:
    headers = message.headers() or []
    first = next((at for at, (name, _) in enumerate(headers) if name.startswith(ORIGIN)), len(headers))
    origin = {name.removeprefix(ORIGIN): value.decode() for name, value in headers[first:]}
    return Record(
        message.offset(), message.timestamp()[1], (message.key(), message.value(), tuple(headers[:first])), origin
    )


def record_contents(records: dict[int, list[Record]]) -> dict[int, list[Content]]:
    """Return the contents of the records of each partition, in their order."""
    return {partition: [record.content for record in stored] for partition, stored in records.items()}


def record_origins(records: dict[int, list[Record]]) -> dict[int, list[int]]:
    """Return the offsets that the records of each partition came from, in their order."""
    return {partition: [int(record.origin["offset"]) for record in stored] for partition, stored in records.items()}


def assert_copied(source: Broker, topic: str, target: Broker, copy: str, cluster: bool = True) -> None:
    """Assert that *copy* has the committed records of *topic*: once, in their order, with their origin."""
    original, copied = read_contents(source, topic), read_contents(target, copy)
    assert record_contents(copied) == record_contents(original)
    for partition, records in original.items():
        origins = [(record.origin["topic"], int(record.origin["partition"])) for record in copied[partition]]
        assert origins == [(topic, partition)] * len(records)
        places = [(int(record.origin["offset"]), int(record.origin["timestamp"])) for record in copied[partition]]
        assert places == [(record.offset, record.timestamp) for record in records]
        assert all(("cluster" in record.origin) is cluster for record in copied[partition])


def make_various_records(dice: random.Random, count: int) -> list[Content]:
    """Make records of all kinds: without key, value or headers, with empty ones, with a header's name twice."""
    keys: list[bytes | None] = [None, b"", b"\xff\x00", *(b"key %d" % number for number in range(5))]
    headers: list[Header] = [("a", b"1"), ("a", b"2"), ("\u00fc", b""), ("none", None), ("b", bytes(200))]
    return [
        (
            dice.choice(keys),
            dice.choice([None, b"", b"%d" % number, bytes(dice.randrange(2000))]),
            tuple(dice.sample(headers, dice.randrange(len(headers)))),
        )
        for number in range(count)
    ]


def produce_records(broker: Broker, topic: str, records: Sequence[Content], partitions: int, **settings: Any) -> None:
    """Produce records to the partitions in turn; all are acknowledged."""
    refused: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            refused.append(error)

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **ANY_NUMBER, **settings})
    for number, (key, value, headers) in enumerate(records):
        producer.produce(topic, value, key, partition=number % partitions, headers=list(headers), on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not refused, refused[0]


def make_numbered_records(count: int, size_bytes: int = 100) -> list[Content]:
    """Make records that all differ."""
    return [(b"%d" % (number % 97), b"%d".ljust(size_bytes) % number, ()) for number in range(count)]


def count_offsets(broker: Broker, topic: str) -> int:
    """Return the number of offsets of a topic; 0 if it does not exist, or has no leader yet."""
    consumer = _make_watcher(broker)
    try:
        known = consumer.list_topics(timeout=30).topics.get(topic)
        partitions = list(known.partitions) if known and not known.error else []
        return sum(
            consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1] for partition in partitions
        )
    except KafkaException:
        return 0


@cache
def _make_watcher(broker: Broker) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "watcher", "log_level": 0})


def client_options(broker: Broker, **more: str) -> dict[str, str]:
    """Return Spark's options for clients of a broker."""
    return {"kafka.bootstrap.servers": broker.bootstrap, **more}


def run_mirror(
    spark: Any, source: Broker, target: Broker, checkpoint: Path, names: TargetNames | None = None, /, **more: str
) -> MirrorSummary:
    """Mirror the existing records in this process; the offset map is a topic named after the checkpoint."""
    reading = client_options(
        source, **{"startingOffsets": "earliest", "kafka.isolation.level": "read_committed", **more}
    )
    stream = StreamOptions(str(checkpoint))
    return mirror(
        spark, reading, client_options(target), stream=stream, names=names, offset_map=f"map-{checkpoint.name}"
    )


class Run:
    """`kafkacompat spark …` as a process of its own, with all processes that it starts."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "kafkacompat", "spark", *arguments, "--master", "local[2]"]
        folder.mkdir(parents=True, exist_ok=True)
        self._out, self._err = folder / "stdout", folder / "stderr"
        with self._out.open("ab") as out, self._err.open("ab") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT, start_new_session=True)

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def stdout(self) -> str:
        return self._out.read_text(errors="replace")

    @property
    def stderr(self) -> str:
        return self._err.read_text(errors="replace")

    def kill(self) -> None:
        """Kill the process and its JVM at once, like a power cut."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> int:
        """Ask the process to end, and wait until it has."""
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Wait until the process ends; return its exit code."""
        try:
            return self.process.wait(RUN_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


def kill_in_the_middle(
    folder: Path, arguments: Sequence[str], done: Callable[[], int], most: int, count: float
) -> None:
    """Start a pipeline, and kill it in the middle of its work, once a random share of *most* is done."""
    before = done()
    wanted = random.randint(before + 1, max(before + 1, most))
    run = Run(folder, *arguments)
    try:
        until(lambda: done() >= wanted or run.has_ended, timeout_seconds=RUN_SECONDS, every_seconds=0.02)
    finally:
        run.kill()
    assert run.process.returncode == -signal.SIGKILL, f"it had ended:\n{run.stderr[-2000:]}"
    after = done()
    print(f"to be killed at {wanted}: killed with {after} of {count} done, {before} before it")
    assert before < after < count, "the kill did not fall in the middle"


def kill_some_times(folder: Path, arguments: Sequence[str], done: Callable[[], int], count: int) -> None:
    """Kill a pipeline in the middle, and again after it continues, as often as `kill_count` says."""
    for number in range(kill_count()):
        kill_in_the_middle(folder / f"run{number}", arguments, done, count * (number + 1) // (kill_count() + 2), count)


def kill_count() -> int:
    """Return the number of kills of a test, which COMPAT_TESTS_KILLS sets."""
    return int(os.environ.get("COMPAT_TESTS_KILLS", "3"))
