"""The table of a rollup's results, in Parquet or Delta: a row for each window and combination of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.rollup.settings import RollupSettings
from spark_integration.state.files import HadoopFiles

WRITING = "_writing"
BATCH_VIEW = "rollup_batch"
DAY_MS = 86_400_000


class RollupTable(Protocol):
    """The table of results; each operation can be repeated, and then changes nothing."""

    def put(self, number: int, rows: DataFrame) -> None:
        """Put the results of a batch into the table, in place of rows with the same window and dimensions."""

    def read(self) -> DataFrame | None:
        """Return the table; None while it has no row."""

    def drop(self, horizon_ms: int) -> None:
        """Drop windows that end at the horizon or before."""


def is_window_over(horizon_ms: int) -> Column:
    """Whether a row's window ends at the horizon or before."""
    return sql.col("window_end") <= sql.timestamp_millis(sql.lit(horizon_ms))


def add_window_date(rows: DataFrame) -> DataFrame:
    """Add the date on which a window begins, in UTC whatever the session's time zone is."""
    days = sql.floor(sql.unix_millis("window_start") / sql.lit(DAY_MS)).cast("int")
    return rows.withColumn("date", sql.date_from_unix_date(days))


class ParquetTable:
    """Folders ``batch=N/date=D``: a batch is put in place whole, and old windows are dropped day by day."""

    def __init__(self, spark: SparkSession, rollup: RollupSettings) -> None:
        self._spark = spark
        self._length_ms = rollup.windows.length_ms
        self._files = HadoopFiles(spark, rollup.path)

    def put(self, number: int, rows: DataFrame) -> None:
        add_window_date(rows).write.partitionBy("date").mode("overwrite").parquet(self._files.path(WRITING))
        self._files.remove(f"batch={number}")
        self._files.rename(WRITING, f"batch={number}")

    def read(self) -> DataFrame | None:
        return self._spark.read.parquet(self._files.uri) if self._batches() else None

    def drop(self, horizon_ms: int) -> None:
        """Drop the days all of whose windows end at the horizon or before."""
        for batch in self._batches():
            for day in self._dates(batch):
                if self._end_ms(day) <= horizon_ms:
                    self._files.remove(f"{batch}/{day}")
            if not self._dates(batch):
                self._files.remove(batch)

    def _end_ms(self, folder: str) -> int:
        """Return the latest time at which a window that begins on the day of *folder* can end."""
        return (_day_number(folder.removeprefix("date=")) + 1) * DAY_MS - 1 + self._length_ms

    def _batches(self) -> list[str]:
        return [name for name in self._files.names() if name.startswith("batch=")]

    def _dates(self, batch: str) -> list[str]:
        return [name for name in self._files.names(batch) if name.startswith("date=")]


def _day_number(text: str) -> int:
    return date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal()


class DeltaTable:
    """A Delta table, partitioned by date; results are merged into it by window and dimensions."""

    def __init__(self, spark: SparkSession, rollup: RollupSettings) -> None:
        self._spark = spark
        self._keys = rollup.key_columns
        self._files = HadoopFiles(spark, rollup.path)
        self._name = f"delta.`{self._files.uri.replace('`', '``')}`"

    def put(self, number: int, rows: DataFrame) -> None:
        dated = add_window_date(rows)
        if not self._is_there():
            dated.limit(0).write.format("delta").partitionBy("date").mode("ignore").save(self._files.uri)
        dated.createOrReplaceTempView(BATCH_VIEW)
        same = " AND ".join(f"there.`{name}` <=> batch.`{name}`" for name in ("date", *self._keys))
        dated.sparkSession.sql(
            f"MERGE INTO {self._name} there USING {BATCH_VIEW} batch ON {same} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def read(self) -> DataFrame | None:
        return self._spark.read.format("delta").load(self._files.uri) if self._is_there() else None

    def drop(self, horizon_ms: int) -> None:
        if self._is_there():
            self._spark.sql(f"DELETE FROM {self._name} WHERE window_end <= timestamp_millis({horizon_ms})")

    def _is_there(self) -> bool:
        return self._files.exists("_delta_log")


TABLES: Mapping[str, Callable[[SparkSession, RollupSettings], RollupTable]] = {
    "parquet": ParquetTable,
    "delta": DeltaTable,
}
