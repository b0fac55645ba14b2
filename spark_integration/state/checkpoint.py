"""The batches that a streaming query has planned and finished, as its checkpoint says (Spark's offset and commit log)."""

from __future__ import annotations

import json
from typing import NamedTuple

from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError
from spark_integration.state.files import HadoopFiles
from spark_integration.topics.offsets import Offsets, parse_offsets

# Spark's sources read it as the earliest offset.
EARLIEST = -2
# Only Spark's own tests set it, but it decides which watermark makes a row late.
TWO_WATERMARKS = "spark.sql.streaming.statefulOperator.allowMultiple"


class PlannedBatch(NamedTuple):
    """A micro-batch as it was planned, before it ran.

    The batch closes windows that end at *watermark_ms* or before. Its rows are late if their windows end at
    *late_until_ms* or before, which is the watermark of the batch before (milliseconds since 1970; 0: none yet).
    """

    start: Offsets
    end: Offsets
    watermark_ms: int
    late_until_ms: int


def read_finished_offsets(spark: SparkSession, checkpoint: str, source: int = 0) -> Offsets | None:
    """Return the end of the last committed batch for the source of that number; None before the first one.

    A batch is finished once it is in ``commits``. One that is only in ``offsets`` was planned, and Spark repeats it.
    """
    files = HadoopFiles(spark, checkpoint)
    batches = files.numbers("commits")
    return _end_offsets(_read_log_lines(files, batches[-1]), source) if batches else None


def read_planned_offsets(spark: SparkSession, checkpoint: str, number: int, source: int = 0) -> Offsets:
    """Return the planned end of a batch for the source of that number; it is known once the batch runs."""
    return _end_offsets(_read_log_lines(HadoopFiles(spark, checkpoint), number), source)


def read_planned_batch(spark: SparkSession, checkpoint: str, number: int, source: int = 0) -> PlannedBatch:
    """Return what a batch reads from the source of that number; it is known once the batch runs."""
    files = HadoopFiles(spark, checkpoint)
    planned = _read_log_lines(files, number)
    before = _read_log_lines(files, number - 1) if number > 0 else None
    begun = _end_offsets(before, source) if before else _read_initial_offsets(files, source)
    end = _end_offsets(planned, source)
    watermark_ms = _watermark_ms(planned)
    late_until_ms = _watermark_ms(before) if before else 0
    if spark.conf.get(TWO_WATERMARKS, "true") != "true":
        late_until_ms = watermark_ms
    # A partition that was added later is read from its beginning.
    return PlannedBatch(
        {partition: begun.get(partition, EARLIEST) for partition in end}, end, watermark_ms, late_until_ms
    )


def _read_log_lines(files: HadoopFiles, number: int) -> list[str]:
    """Return the lines of a batch in the offset log: the version, the metadata, then one for each source."""
    if not files.exists(f"offsets/{number}"):
        raise PipelineError(f"the checkpoint {files.uri} lacks batch {number}: give one that is whole, or a new one")
    return files.read(f"offsets/{number}").splitlines()


def _end_offsets(lines: list[str], source: int) -> Offsets:
    return parse_offsets(lines[2 + source])


def _watermark_ms(lines: list[str]) -> int:
    return int(json.loads(lines[1])["batchWatermarkMs"])


def _read_initial_offsets(files: HadoopFiles, source: int) -> Offsets:
    """Read the offsets at which the Kafka source began; they follow a zero byte and a line with the version."""
    return parse_offsets(files.read(f"sources/{source}/0").partition("\n")[2])
