"""Spark's Kafka source on nasty topics: a batch, and a stream whose micro-batches end anywhere between the records."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark

from compat_tests.matrix.records import Record
from compat_tests.matrix.run import broker_version
from compat_tests.nasty.judging import compare
from compat_tests.nasty.shapes import COMMITTED, Scene, Shape
from kafkacompat.testing.nasty import ExpectedRecord
from spark_integration.session import start_session

COLUMNS = (
    "partition",
    "offset",
    "cast(key as string) as key",
    "cast(value as string) as value",
    "unix_millis(timestamp) as timestamp",
)
MICRO_BATCHES = 7
"""Micro-batches in which a stream reads a topic, so that some begin or end at an offset without a record."""
STREAM_TIMEOUT_S = 120
SHOWN_WORDS = 300
DATA_LOSS = "data may have been lost"


class SparkTrial:
    """Spark beside a broker of this process; ``append_last`` appends a record to partition 0 of a topic."""

    def __init__(self, kafka: Any, append_last: Callable[[str], ExpectedRecord], tell: Callable[[str], None]) -> None:
        self._kafka = kafka
        self._append_last = append_last
        self._tell = tell
        self._session: Any = None

    def run(self, shapes: Sequence[Shape]) -> dict[str, Any]:
        """Return the result in the report's shape."""
        self._tell("starting Spark")
        self._session = start_session("nasty", master="local[2]", shuffle_partitions=2)
        self._session.sparkContext.setLogLevel("OFF")
        try:
            return {
                "title": f"Spark {pyspark.__version__}, batch and stream",
                "date": f"{datetime.date.today()}",
                "broker_version": broker_version(),
                "topics": {shape.name: self._run(shape) for shape in shapes},
            }
        finally:
            self._session.stop()

    def _run(self, shape: Shape) -> Mapping[str, str]:
        outcomes = {}
        for isolation in shape.isolations:
            self._tell(f"{shape.name}, {isolation}")
            scene = shape.make(self._kafka.nasty, f"spark-{shape.name.replace('_', '-')}-{isolation}")
            try:
                outcomes[isolation] = self._read(scene, isolation, shape)
            except Exception as problem:
                outcomes[isolation] = f"stopped: {_find_reason(problem)}"
        return outcomes

    def _read(self, scene: Scene, isolation: str, shape: Shape) -> str:
        expected = scene.topic.expected(committed=isolation == COMMITTED)
        batch = self._options(self._session.read, scene, isolation).load()
        if problem := compare(_collect(batch), expected, has_timestamps=True):
            return f"the batch: {problem}"
        size = sum(scene.topic.end_offsets.values())
        limit = max(size // MICRO_BATCHES, 1)
        with tempfile.TemporaryDirectory() as folder:
            stream = self._options(self._session.readStream, scene, isolation).option("maxOffsetsPerTrigger", limit)
            if problem := compare(_run_stream(stream, Path(folder)), expected, has_timestamps=True):
                return f"the stream: {problem}"
            if shape.is_shared:
                return ""
            changed = () if scene.change is None else scene.change()
            last = self._append_last(scene.topic.name)
            problem = compare(_run_stream(stream, Path(folder)), [*changed, last], has_timestamps=True)
        return f"the stream, after the existing records: {problem}" if problem else ""

    def _options(self, reader: Any, scene: Scene, isolation: str) -> Any:
        level = "read_committed" if isolation == COMMITTED else "read_uncommitted"
        return reader.format("kafka").options(
            **{
                "kafka.bootstrap.servers": self._kafka.bootstrap_servers,
                "subscribe": scene.topic.name,
                "startingOffsets": "earliest",
                "kafka.isolation.level": level,
            }
        )


def _collect(frame: Any) -> list[Record]:
    rows = frame.selectExpr(*COLUMNS).collect()
    return sorted(Record(row.partition, row.offset, row.key, row.value, row.timestamp) for row in rows)


def _run_stream(reader: Any, folder: Path) -> list[Record]:
    """Run a stream over the existing records, from the end of its checkpoint in *folder* on; returns its records."""
    read: list[Record] = []

    def keep(frame: Any, _: int) -> None:
        read.extend(_collect(frame))

    writer = reader.load().writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    try:
        if not query.awaitTermination(STREAM_TIMEOUT_S):
            raise TimeoutError(f"the stream had not ended after {STREAM_TIMEOUT_S} s")
    finally:
        query.stop()
    return read


def _find_reason(problem: Exception) -> str:
    """Return the line that says which data are lost, or else the first one, which has Spark's condition."""
    lines = [line for line in str(problem).splitlines() if line.strip()] or [type(problem).__name__]
    return next((line.partition("Exception: ")[2] or line for line in lines if DATA_LOSS in line), lines[0])[
        :SHOWN_WORDS
    ]
