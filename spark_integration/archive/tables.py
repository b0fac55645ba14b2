"""An archive as a Delta or an Iceberg table, whose own log says which files are part of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as sql

from spark_integration.archive.layout import SCHEMA, sort_for_files
from spark_integration.archive.parquet import count_ranges, delete_older_commits
from spark_integration.state.files import HadoopFiles
from spark_integration.state.manifest import ArchiveCommit, DataFile, covered_intervals
from spark_integration.topics.intervals import Intervals, covering_condition, records_within, spans_of

MARK = "kafkacompat-archive-commit"


class TableStore(ABC):
    """Appends once for each commit, and marks it in the table's log with the commit's run and number.

    The mark tells a later run whether the table holds a commit that the manifest lacks. Tables forget their history
    after a time (Delta's log, expire_snapshots). Then the records themselves tell, since an append is atomic.
    """

    format: str

    def __init__(
        self, spark: SparkSession, files: HadoopFiles, partition_by: Sequence[str], max_records_per_file: int
    ) -> None:
        self.spark, self.path, self._files = spark, files.uri, files
        self.partition_by = tuple(partition_by)
        self._max_records_per_file = max_records_per_file

    def stage(self, frame: DataFrame, commit: ArchiveCommit) -> ArchiveCommit:
        """Write nothing: readers would see it at once."""
        return commit

    def publish(self, frame: DataFrame, commit: ArchiveCommit, new: Sequence[DataFile]) -> ArchiveCommit:
        """Append, or merge small files; return the commit with the records that the table holds of its ranges."""
        if commit.kind == "compact":
            self.merge()
            return commit
        writer = sort_for_files(frame, self.partition_by).write.format(self.format).mode("append")
        marked = self.with_mark(writer.option("maxRecordsPerFile", self._max_records_per_file), commit_mark(commit))
        marked.save(self.path)
        return self._count_records(commit)

    def has_published(self, commit: ArchiveCommit) -> bool:
        """Return whether the table's log has the mark of the commit."""
        return commit.kind == "batch" and self.has(commit_mark(commit))

    def recover(self, commit: ArchiveCommit, new: Sequence[DataFile]) -> ArchiveCommit | None:
        """Return the commit if the table holds its records, which then stay."""
        if commit.kind != "batch" or not commit.ranges:
            return None
        return (
            self._count_records(commit)
            if self.has_published(commit) or self.holds_any(covered_intervals(commit.ranges))
            else None
        )

    def finish(self, commit: ArchiveCommit) -> None:
        """Delete the commits that this one stands for; the table deletes files itself (VACUUM, expire_snapshots)."""
        delete_older_commits(self._files, commit)

    def _count_records(self, commit: ArchiveCommit) -> ArchiveCommit:
        if not commit.ranges:
            return commit
        intervals = covered_intervals(commit.ranges)
        held = tuple(span for (span,) in spans_of(self._read_near(intervals), intervals))
        return replace(commit, ranges=count_ranges(commit.ranges, [DataFile("", 0, held)]))

    def holds_any(self, intervals: Intervals) -> bool:
        """Return whether the table holds any record of these offsets."""
        return bool(records_within(self._read_near(intervals), intervals).head(1))

    def _read_near(self, intervals: Intervals) -> DataFrame:
        return self.spark.read.format(self.format).load(self.path).where(covering_condition(intervals))

    @abstractmethod
    def create(self) -> None:
        """Create the table if it does not exist."""

    @abstractmethod
    def with_mark(self, writer: DataFrameWriter, mark: str) -> DataFrameWriter:
        """Return the writer with the mark for the table's log."""

    @abstractmethod
    def has(self, mark: str) -> bool:
        """Return whether the table's log has the mark."""

    @abstractmethod
    def merge(self) -> None:
        """Merge small files."""


class DeltaStore(TableStore):
    """A Delta table; the mark is a commit's userMetadata."""

    format = "delta"

    def create(self) -> None:
        """Write nothing into a new table."""
        if any(name.endswith(".json") for name in self._files.names("_delta_log")):
            return
        empty = self.spark.createDataFrame([], SCHEMA).write.format("delta").mode("append")
        empty.partitionBy(*self.partition_by).save(self.path)

    def with_mark(self, writer: DataFrameWriter, mark: str) -> DataFrameWriter:
        """Return the writer with the mark for the append."""
        return writer.option("userMetadata", f"{MARK}={mark}")

    def has(self, mark: str) -> bool:
        """Search the table's history."""
        history = self.spark.sql(f"DESCRIBE HISTORY delta.`{self.path}`")
        return bool(history.where(sql.col("userMetadata") == f"{MARK}={mark}").head(1))

    def merge(self) -> None:
        """Let Delta merge them (OPTIMIZE)."""
        self.spark.sql(f"OPTIMIZE delta.`{self.path}`").collect()


class IcebergStore(TableStore):
    """An Iceberg table at a path (a Hadoop table); the mark is in a snapshot's summary."""

    format = "iceberg"

    def create(self) -> None:
        """Create an empty table."""
        if self._tables().exists(self.path):
            return
        jvm: Any = self.spark._jvm
        struct = jvm.org.apache.spark.sql.types.StructType.fromDDL(SCHEMA)
        schema = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(struct)
        builder = jvm.org.apache.iceberg.PartitionSpec.builderFor(schema)
        for name in self.partition_by:
            builder = builder.identity(name)
        properties = jvm.java.util.HashMap()
        # There are few tasks already, and a shuffle would change their number.
        properties.put("write.distribution-mode", "none")
        self._tables().create(schema, builder.build(), properties, self.path)

    def with_mark(self, writer: DataFrameWriter, mark: str) -> DataFrameWriter:
        """Return the writer with the mark for the snapshot."""
        return writer.option(f"snapshot-property.{MARK}", mark)

    def has(self, mark: str) -> bool:
        """Search the table's snapshots."""
        snapshots = self.spark.read.format("iceberg").load(f"{self.path}#snapshots")
        return bool(snapshots.where(sql.col("summary")[MARK] == mark).head(1))

    def merge(self) -> None:
        """Let Iceberg merge them (rewrite_data_files)."""
        jvm: Any = self.spark._jvm
        actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(self.spark._jsparkSession)
        actions.rewriteDataFiles(self._tables().load(self.path)).execute()

    def _tables(self) -> Any:
        jvm: Any = self.spark._jvm
        return jvm.org.apache.iceberg.hadoop.HadoopTables(self.spark._jsc.hadoopConfiguration())


def commit_mark(commit: ArchiveCommit) -> str:
    """Return a text that tells this commit from every other."""
    return f"{commit.run_id}/{commit.number}"
