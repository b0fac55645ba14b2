"""No more than so many records a second: slices of one second each, every one a job of Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.storagelevel import StorageLevel

from spark_integration.sink import PARTITION

NUMBER = "number"


def write_paced(frame: DataFrame, rate: int, write: Callable[[DataFrame], None], stopped: threading.Event) -> int:
    """Write *frame* in the order of time, *rate* records a second at most, until *stopped*; return how many.

    It is sorted once and kept on the executors' disks meanwhile.
    """
    numbered = by_time(frame).withColumn(NUMBER, sql.monotonically_increasing_id()).persist(StorageLevel.DISK_ONLY)
    done = 0
    try:
        for first, last in paced(numbered.count(), rate, stopped.wait):
            write(numbered.where(sql.col(NUMBER).between(first, last - 1)))
            done = last
    finally:
        numbered.unpersist()
    return done


def by_time(frame: DataFrame) -> DataFrame:
    """Bring all into one task by their times, and a partition's records by offset where their times run backwards."""
    until_here = Window.partitionBy(*PARTITION).orderBy("offset")
    timed = frame.withColumn("at", sql.max("timestamp").over(until_here))
    return timed.repartition(1).sortWithinPartitions("at", *PARTITION, "offset").drop("at")


def paced(
    count: int, rate: int, wait: Callable[[float], bool], now: Callable[[], float] = time.monotonic
) -> Iterator[tuple[int, int]]:
    """Yield slices of 0…*count*, each a second after the one before it at the earliest; end where *wait* says so."""
    due = now()
    for first in range(0, count, rate):
        if wait(max(0.0, due - now())):
            return
        due = now() + 1
        yield first, min(first + rate, count)
