"""The records of an archive, and what its manifest says should be there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.archive.reading import read_archive, records_of, sizes
from spark_integration.audit.fields import Fields
from spark_integration.audit.places import ARCHIVE, COMMIT, UNKNOWN, Edge, Place, edges_of, noted, placed
from spark_integration.errors import PipelineError
from spark_integration.manifest import Manifest, read_manifest

PARQUET = "parquet"
UNITS = "topic string, partition int, first bigint, last bigint, records bigint, where string"


class Unit(NamedTuple):
    """Records of a partition that were archived together, by a commit or in a file (`where`)."""

    topic: str
    partition: int
    first: int
    last: int
    records: int
    where: str


@dataclass(frozen=True)
class ArchivePlace:
    """An archive as it is judged: `gone` are the units of files that are missing or not as they were written."""

    place: Place
    manifest: Manifest
    topics: Collection[str]
    gone: tuple[Unit, ...]

    def lost(self, spark: SparkSession) -> DataFrame:
        """Findings of records that the manifest counts and that are not there: `gone`, or those of a table's commits."""
        if self.manifest.description.format == PARQUET:
            return spark.createDataFrame(list(self.gone), UNITS).withColumnsRenamed(
                {"records": "count", "where": "note"}
            )
        told = spark.createDataFrame(
            list(enumerate(_by_commit(self.manifest, self.topics))), f"number int, unit struct<{UNITS}>"
        )
        # A record that is there twice is one of them.
        found = self.place.records.groupBy(sql.col("unit").alias("number")).agg(
            sql.countDistinct("at").alias("present")
        )
        left = told.join(found, "number", "left").select("unit.*", sql.coalesce("present", sql.lit(0)).alias("present"))
        lost = left.withColumn("count", sql.col("records") - sql.col("present")).where("count > 0")
        return lost.select("topic", "partition", "first", "last", "count", sql.col("where").alias("note"))


def archive_place(
    spark: SparkSession,
    path: str,
    fields: Fields,
    *,
    format: str | None = None,
    topics: Collection[str] = (),
    with_contents: bool = False,
) -> ArchivePlace:
    """Read the archive at *path*, of *topics* alone if there are any named; raises PipelineError.

    Of a Parquet archive files that are missing or of another size are left out: `lost` tells of them.
    """
    manifest = read_manifest(spark, path)
    wanted = _wanted(manifest, topics, path)
    gone = _gone(spark, path, manifest)
    frame = _records(spark, path, manifest, format, gone).where(sql.col("topic").isin(*wanted))
    edges = [
        *edges_of({one: spans for one, spans in manifest.covered.items() if one.topic in wanted}),
        *_commit_edges(manifest, wanted),
    ]
    records = noted(frame, fields, with_contents=with_contents).withColumn("visible", sql.lit(True))
    units = tuple(unit for units in gone.values() for unit in units if unit.topic in wanted)
    return ArchivePlace(placed(spark, ARCHIVE, records, edges), manifest, wanted, units)


def _wanted(manifest: Manifest, topics: Collection[str], path: str) -> set[str]:
    there = {one.topic for one in manifest.covered}
    if missing := sorted(set(topics) - there):
        raise PipelineError(
            f"the archive in {path} has no topic {missing[0]}: it holds {', '.join(sorted(there)) or 'none'}"
        )
    return set(topics) or there


def _gone(spark: SparkSession, path: str, manifest: Manifest) -> dict[str, list[Unit]]:
    """The files of a Parquet archive that are missing or of another size, and what was in them."""
    if manifest.description.format != PARQUET:
        return {}
    there = sizes(spark, path)
    return {
        file.path: [
            Unit(*span, f"{file.path} is {'damaged' if file.path in there else 'missing'}") for span in file.spans
        ]
        for file in manifest.files
        if there.get(file.path) != file.size_bytes
    }


def _records(
    spark: SparkSession, path: str, manifest: Manifest, format: str | None, gone: Collection[str]
) -> DataFrame:
    if not gone:
        return read_archive(spark, path, format)
    return records_of(spark, path, [file.path for file in manifest.files if file.path not in gone])


def _by_commit(manifest: Manifest, wanted: Collection[str]) -> list[Unit]:
    return [
        Unit(one.topic, one.partition, one.from_offset, one.until_offset - 1, one.records, f"commit {commit.number}")
        for commit in manifest.commits
        for one in commit.ranges
        if one.topic in wanted
    ]


def _commit_edges(manifest: Manifest, wanted: Collection[str]) -> list[Edge]:
    """Mark where the ranges of commits begin; when a range was archived is no longer told once it is merged."""
    times = [
        UNKNOWN if commit.kind == "compact" else commit.time_ms
        for commit in manifest.commits
        for one in commit.ranges
        if one.topic in wanted
    ]
    return [
        Edge(unit.topic, unit.partition, unit.first, COMMIT, archived_ms=time_ms, unit=number)
        for number, (unit, time_ms) in enumerate(zip(_by_commit(manifest, wanted), times, strict=True))
    ]
