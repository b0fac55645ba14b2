"""An archive as a folder of Parquet files, which any reader of Parquet can read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from spark_integration.archive.layout import SCHEMA, sort_for_files
from spark_integration.archive.ledger import staging_folder
from spark_integration.state.files import HadoopFiles
from spark_integration.state.manifest import COMMITS, ArchiveCommit, DataFile, OffsetRange, covered_intervals
from spark_integration.topics.intervals import spans_of
from spark_integration.topics.offsets import RecordSpan, TopicPartition

KEPT_COMMITS = 100


class ParquetStore:
    """Writes below ``staging`` first, which readers of folders skip, then renames file by file."""

    def __init__(
        self, spark: SparkSession, files: HadoopFiles, partition_by: Sequence[str], max_records_per_file: int
    ) -> None:
        self._spark, self._files = spark, files
        self._partition_by = tuple(partition_by)
        self._max_records_per_file = max_records_per_file

    def create(self) -> None:
        """Do nothing: folders are created with their files."""

    def stage(self, frame: DataFrame, commit: ArchiveCommit) -> ArchiveCommit:
        """Write the files; return the commit with them, and with the records that they hold of each range."""
        folder = f"{staging_folder(commit)}/data"
        # This is the query's own session, so the user's settings stay. INT96, the default, has no statistics.
        frame.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        writer = sort_for_files(frame, self._partition_by).write.mode("overwrite").partitionBy(*self._partition_by)
        writer.option("maxRecordsPerFile", self._max_records_per_file).parquet(self._files.path(folder))
        staged = self._list_staged(folder, commit.ranges)
        ranges = count_ranges(commit.ranges, staged) if commit.kind == "batch" else commit.ranges
        return replace(commit, files=(*commit.files, *staged), ranges=ranges)

    def publish(self, frame: DataFrame, commit: ArchiveCommit, new: Sequence[DataFile]) -> ArchiveCommit:
        """Move the files to where readers find them."""
        for folder in {file.path.rpartition("/")[0] for file in new}:
            self._files.make_folder(folder)
        for file in new:
            self._files.rename(f"{staging_folder(commit)}/data/{file.path}", file.path)
        return commit

    def has_published(self, commit: ArchiveCommit) -> bool:
        """Return False: files have no log but the manifest."""
        return False

    def recover(self, commit: ArchiveCommit, new: Sequence[DataFile]) -> None:
        """Delete the files, which no commit names."""
        for file in new:
            self._files.remove(file.path)

    def finish(self, commit: ArchiveCommit) -> None:
        """Delete the merged files, and the commits that this commit stands for."""
        for path in commit.removed:
            self._files.remove(path)
        delete_older_commits(self._files, commit)

    def _list_staged(self, folder: str, ranges: Iterable[OffsetRange]) -> list[DataFile]:
        """Read back which records of which range are in which file."""
        frame = self._spark.read.schema(SCHEMA).parquet(self._files.path(folder))
        places = frame.select("_metadata.file_path", "_metadata.file_size", "topic", "partition", "offset")
        sizes, held = {}, dict[str, list[RecordSpan]]()
        for uri, size, span in spans_of(places, covered_intervals(ranges), "file_path", "file_size"):
            path = unquote(uri).rpartition(f"{folder}/")[2]
            sizes[path] = size
            held.setdefault(path, []).append(span)
        return [DataFile(path, sizes[path], tuple(sorted(held[path]))) for path in sorted(sizes)]


def count_ranges(ranges: Iterable[OffsetRange], files: Iterable[DataFile]) -> tuple[OffsetRange, ...]:
    """Return the ranges with the number of their records in *files*; no span reaches from one range into another."""
    found_spans: dict[TopicPartition, list[RecordSpan]] = {}
    for file in files:
        for span in file.spans:
            found_spans.setdefault(TopicPartition(span.topic, span.partition), []).append(span)
    return tuple(
        count_range(
            archived,
            [
                span
                for span in found_spans.get(archived.topic_partition, [])
                if archived.from_offset <= span.first_offset < archived.until_offset
            ],
        )
        for archived in ranges
    )


def count_range(archived: OffsetRange, spans: Sequence[RecordSpan]) -> OffsetRange:
    """Return the range with the sum of *spans*."""
    return archived._replace(
        records=sum(span.records for span in spans),
        first_offset=min((span.first_offset for span in spans), default=None),
        last_offset=max((span.last_offset for span in spans), default=None),
    )


def delete_older_commits(files: HadoopFiles, commit: ArchiveCommit) -> None:
    """Delete the commits before a compaction, except for the last ones.

    A run that was overtaken just before it commits must find its number taken.
    """
    if commit.kind != "compact":
        return
    for name in files.names(COMMITS):
        if int(name.partition(".")[0]) < commit.number - KEPT_COMMITS:
            files.remove(f"{COMMITS}/{name}")
