"""The records of an archive, and the records that its manifest names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.archive.reading import data_file_sizes, read_archive, read_parquet_files
from spark_integration.audit.places import (
    ARCHIVE,
    COMMIT,
    UNKNOWN,
    AuditedPlace,
    PlaceCuts,
    PlaceEdge,
    audit_columns,
    interval_edges,
    make_place,
)
from spark_integration.audit.settings import AuditFields
from spark_integration.errors import PipelineError
from spark_integration.state.archives import read_manifest
from spark_integration.state.manifest import ArchiveManifest
from spark_integration.topics.intervals import records_within
from spark_integration.topics.offsets import Interval, TopicPartition, join_intervals, subtract_intervals

PARQUET = "parquet"
UNITS = "topic string, partition int, first bigint, last bigint, records bigint, where string"


class ArchivedUnit(NamedTuple):
    """Records of a partition that were archived together, by a commit or in a file (`where`)."""

    topic: str
    partition: int
    first: int
    last: int
    records: int
    where: str


@dataclass(frozen=True)
class AuditedArchive:
    """An archive that is judged: `gone` are the units of files that are missing or changed."""

    place: AuditedPlace
    manifest: ArchiveManifest
    topics: Collection[str]
    gone: tuple[ArchivedUnit, ...]

    def find_lost(self, spark: SparkSession) -> DataFrame:
        """Return findings of records that the archive has lost: `gone`, or those that a table's commits lack."""
        if self.manifest.description.format == PARQUET:
            return spark.createDataFrame(list(self.gone), UNITS).withColumnsRenamed(
                {"records": "count", "where": "note"}
            )
        expected = spark.createDataFrame(
            list(enumerate(_units_by_commit(self.manifest, self.topics))), f"number int, unit struct<{UNITS}>"
        )
        # A record that the archive holds twice counts once.
        present = self.place.records.groupBy(sql.col("unit").alias("number")).agg(
            sql.countDistinct("at").alias("present")
        )
        left = expected.join(present, "number", "left").select(
            "unit.*", sql.coalesce("present", sql.lit(0)).alias("present")
        )
        lost = left.withColumn("count", sql.col("records") - sql.col("present")).where("count > 0")
        return lost.select("topic", "partition", "first", "last", "count", sql.col("where").alias("note"))


def read_archive_place(
    spark: SparkSession,
    path: str,
    fields: AuditFields,
    *,
    format: str | None = None,
    topics: Collection[str] = (),
    with_contents: bool = False,
) -> AuditedArchive:
    """Read the archive at *path*, or only *topics* if any are named; raises PipelineError.

    Files of a Parquet archive that are missing or have another size are left out; `lost` reports them.
    """
    manifest, gone = read_manifest_and_damage(spark, path)
    wanted = _topics_to_judge(manifest, topics, path)
    covered = {partition: intervals for partition, intervals in manifest.covered.items() if partition.topic in wanted}
    # A table may hold records that this manifest does not name yet.
    frame = records_within(_read_intact_records(spark, path, manifest, format, gone), covered)
    edges = [*interval_edges(covered), *commit_edges(manifest, wanted)]
    # The archive's partitions do not end at the same moment: a record that one partition lacks may come with the next
    # batch.
    cuts = PlaceCuts(
        before=[partition for partition, intervals in covered.items() if intervals[0][0] > 0], after=list(covered)
    )
    records = audit_columns(frame, fields, with_contents=with_contents).withColumn("visible", sql.lit(True))
    place = make_place(spark, ARCHIVE, records, edges, cuts)
    place.rows.count()  # before a running archive merges its files
    units = tuple(unit for units in gone.values() for unit in units if unit.topic in wanted)
    return AuditedArchive(place, manifest, wanted, units)


def read_manifest_and_damage(spark: SparkSession, path: str) -> tuple[ArchiveManifest, dict[str, list[ArchivedUnit]]]:
    """Read the manifest, and find the files that it names and that are missing or changed.

    If a later commit has merged such a file, the file was intact. Then the later manifest is checked instead.
    """
    manifest = read_manifest(spark, path)
    while gone := _find_damage(spark, path, manifest):
        later = read_manifest(spark, path)
        if gone.keys() <= {file.path for file in later.files}:
            break
        manifest = later
    return manifest, gone


def _topics_to_judge(manifest: ArchiveManifest, topics: Collection[str], path: str) -> set[str]:
    """Return the topics to judge.

    A topic of which the archive holds nothing may be empty or new. If it holds none of *topics*, it is another archive.
    """
    archived = {partition.topic for partition in manifest.covered}
    if topics and archived and not archived.intersection(topics):
        raise PipelineError(
            f"the archive in {path} has no topic {min(topics)}: it holds {', '.join(sorted(archived))}; correct --path"
        )
    return set(topics) or archived


def _find_damage(spark: SparkSession, path: str, manifest: ArchiveManifest) -> dict[str, list[ArchivedUnit]]:
    """Return the units in the files of a Parquet archive that are missing or have another size, by path."""
    if manifest.description.format != PARQUET:
        return {}
    found_sizes = data_file_sizes(spark, path)
    return {
        file.path: [
            ArchivedUnit(*span, f"{file.path} is {'damaged' if file.path in found_sizes else 'missing'}")
            for span in file.spans
        ]
        for file in manifest.files
        if found_sizes.get(file.path) != file.size_bytes
    }


def _read_intact_records(
    spark: SparkSession, path: str, manifest: ArchiveManifest, format: str | None, gone: Collection[str]
) -> DataFrame:
    if not gone:
        return read_archive(spark, path, format)
    return read_parquet_files(spark, path, [file.path for file in manifest.files if file.path not in gone])


def _units_by_commit(manifest: ArchiveManifest, wanted: Collection[str]) -> list[ArchivedUnit]:
    return [
        ArchivedUnit(
            archived.topic,
            archived.partition,
            archived.from_offset,
            archived.until_offset - 1,
            archived.records,
            f"commit {commit.number}",
        )
        for commit in manifest.commits
        for archived in commit.ranges
        if archived.topic in wanted
    ]


def commit_edges(manifest: ArchiveManifest, wanted: Collection[str]) -> list[PlaceEdge]:
    """Mark where the offsets that a commit added begin; earlier commits may hold other parts of its range.

    The time at which a range was archived is lost once the range is merged.
    """
    added = [
        (commit, archived) for commit in manifest.commits for archived in commit.ranges if archived.topic in wanted
    ]
    covered: dict[TopicPartition, list[Interval]] = {}
    edges = []
    for number, (commit, archived) in enumerate(added):
        time_ms = UNKNOWN if commit.kind == "compact" else commit.time_ms
        known, whole = covered.get(archived.topic_partition, []), (archived.from_offset, archived.until_offset)
        covered[archived.topic_partition] = join_intervals([*known, whole])
        for first, _ in subtract_intervals(whole, known):
            edges.append(PlaceEdge(*archived.topic_partition, first, COMMIT, archived_ms=time_ms, unit=number))
    return edges
