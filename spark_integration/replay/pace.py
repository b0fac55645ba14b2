"""A limit on the records a second: slices of one second each, every one a job of Spark."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark_integration.topics.frames import persist_frame
from spark_integration.topics.sink import PARTITION

NUMBER = "number"
# Spark's monotonically_increasing_id has the task above these bits, and the row within it below.
ROW_BITS = 33
# A slice scans the blocks that are kept; Spark skips those whose numbers lie outside of it.
BLOCK_RECORDS = 500_000


class BlockSpan(NamedTuple):
    """Rows *first* to *last*, both included, of one block."""

    block: int
    first: int
    last: int


def write_paced(
    frame: DataFrame, count: int, rate: int, write: Callable[[DataFrame], None], stopped: threading.Event
) -> int:
    """Write the *count* records of *frame* in the order of time, *rate* a second at most, until *stopped*.

    Returns the number of written records. The frame is sorted once, and the executors keep it meanwhile, in memory as
    far as it fits.
    """
    blocks = sort_by_time(frame, math.ceil(count / BLOCK_RECORDS))
    done = 0
    with persist_frame(blocks.withColumn(NUMBER, sql.monotonically_increasing_id())) as numbered:
        counts = _block_counts(numbered)
        for first, end in paced_slices(sum(counts), rate, stopped.wait):
            piece = numbered.where(_is_within(block_spans(counts, first, end)))
            # Rows of several blocks would be several tasks, which run in no order.
            write(piece.repartition(1).sortWithinPartitions(NUMBER))
            done = end
    return done


def sort_by_time(frame: DataFrame, blocks: int) -> DataFrame:
    """Sort by time into *blocks* tasks.

    Where times run backwards, a partition's records keep the order of their offsets.
    """
    until_here = Window.partitionBy(*PARTITION).orderBy("offset")
    timed = frame.withColumn("at", sql.max("timestamp").over(until_here))
    order = ("at", *PARTITION, "offset")
    return timed.repartitionByRange(blocks, *order).sortWithinPartitions(*order).drop("at")


def _block_counts(numbered: DataFrame) -> list[int]:
    """Return the number of rows of each block."""
    rows = numbered.groupBy(sql.shiftright(NUMBER, ROW_BITS).alias("block")).count().collect()
    counts = {row.block: row["count"] for row in rows}
    return [counts.get(block, 0) for block in range(max(counts, default=-1) + 1)]


def block_spans(counts: Sequence[int], first: int, end: int) -> list[BlockSpan]:
    """Return the spans of rows *first* to *end* (excluded) of all rows, in blocks of *counts* rows."""
    spans, begin = [], 0
    for block, count in enumerate(counts):
        low, high = max(first - begin, 0), min(end - begin, count)
        if low < high:
            spans.append(BlockSpan(block, low, high - 1))
        begin += count
    return spans


def _is_within(wanted: Sequence[BlockSpan]) -> Column:
    number = sql.col(NUMBER)
    ranges = [
        number.between((span.block << ROW_BITS) + span.first, (span.block << ROW_BITS) + span.last) for span in wanted
    ]
    return reduce(or_, ranges)


def paced_slices(
    count: int, rate: int, wait: Callable[[float], bool], now: Callable[[], float] = time.monotonic
) -> Iterator[tuple[int, int]]:
    """Yield slices of 0…*count*, each at least a second after the one before it; end when *wait* returns True."""
    due = now()
    for first in range(0, count, rate):
        if wait(max(0.0, due - now())):
            return
        due = now() + 1
        yield first, min(first + rate, count)
