"""Checks before an archive writes anything."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import SparkSession

from spark_integration.archive.batches import check_topic_ids, read_query_id
from spark_integration.archive.reading import require_format
from spark_integration.archive.settings import PARTITION_BY, FileOptions, check_partition_by
from spark_integration.errors import PipelineError, explain_failure
from spark_integration.queries.settings import StreamOptions
from spark_integration.state.archives import is_archive, read_manifest
from spark_integration.state.checkpoint import EARLIEST, read_finished_offsets
from spark_integration.state.files import HadoopFiles
from spark_integration.state.manifest import COMMITS, ArchiveDescription, ArchiveManifest
from spark_integration.topics.cluster import Cluster, OffsetSpec
from spark_integration.topics.offsets import Interval, Offsets, TopicPartition, format_offsets
from spark_integration.topics.source import find_source_topics

LATEST = -1


class CheckedArchive(NamedTuple):
    """What the archive is or will be, the source's options with the offsets to begin at, and its topics' ids."""

    description: ArchiveDescription
    source: Mapping[str, str]
    topic_ids: Mapping[str, str]


def check_before_archiving(
    spark: SparkSession,
    cluster: Cluster,
    source: Mapping[str, str],
    path: str,
    stream: StreamOptions,
    format: str | None,
    partition_by: Sequence[str] | None,
    files: FileOptions,
) -> CheckedArchive:
    """Check everything that has to fit; raises PipelineError. Writes nothing but the archive's empty folder."""
    manifest = _read_or_plan_manifest(spark, path, format, partition_by)
    if manifest.description.format == "iceberg" and files.max_records_per_file:
        raise PipelineError(
            "Iceberg cannot limit the records of a file: leave --maxRecordsPerFile out "
            "(its files have at most what the table's write.target-file-size-bytes says)"
        )
    require_format(spark, manifest.description.format)
    topics = find_source_topics(cluster, source)
    ids = {name: topic.topic_id for name, topic in cluster.topics(topics).items()}
    check_topic_ids(manifest.topic_ids, ids)
    finished = _check_checkpoint(spark, source, path, stream.checkpoint_location, topics, manifest)
    if finished is not None:
        return CheckedArchive(manifest.description, source, ids)
    partitions = source_partitions(cluster, source, topics)
    _check_still_there(cluster, source, partitions, manifest)
    _make_folder(spark, path)
    return CheckedArchive(manifest.description, continue_after_archived(cluster, source, partitions, manifest), ids)


def concurrent_writer_warning(uri: str) -> str | None:
    """Return a warning for users who archive to *uri*, if its file system needs one."""
    if uri.partition(":")[0] not in ("s3", "s3a", "s3n"):
        return None
    return (
        f"S3 cannot rename without a gap, so nothing keeps two runs from writing to {uri} at once: "
        "see to it that there is one"
    )


def _read_or_plan_manifest(
    spark: SparkSession, path: str, format: str | None, names: Sequence[str] | None
) -> ArchiveManifest:
    """Read the manifest of the archive at *path*; if there is none, return an empty one of the archive to be made."""
    if names is not None:
        names = check_partition_by(names)
    if not is_archive(spark, path):
        _check_empty(spark, path)
        return ArchiveManifest(
            ArchiveDescription(format or "parquet", tuple(names or PARTITION_BY), str(uuid.uuid4())), ()
        )
    manifest = read_manifest(spark, path)
    description = manifest.description
    if format not in (None, description.format):
        raise PipelineError(
            f"the archive in {path} is {description.format}, not {format}: give another --path, or no --format"
        )
    if names is not None and tuple(names) != description.partition_by:
        columns = ",".join(description.partition_by)
        raise PipelineError(f"the archive in {path} is split by {columns}: give another --path, or no --partitionBy")
    return manifest


def _check_empty(spark: SparkSession, path: str) -> None:
    files = HadoopFiles(spark, path)
    if files.exists() and not files.is_folder():
        raise PipelineError(f"{path} is a file: give --path a folder, which need not exist yet")
    # A checkpoint may lie beside the data, and so may the first file of a run that ended before it wrote its
    # description.
    if others := [name for name in files.names() if not name.startswith(("_", "."))]:
        raise PipelineError(f"{path} holds {others[0]} and is no archive: give --path a folder that is empty or new")


def _make_folder(spark: SparkSession, path: str) -> None:
    try:
        HadoopFiles(spark, path).make_folder(COMMITS)
    except Exception as problem:
        raise PipelineError(
            f"{path} cannot be written to ({explain_failure(problem)}): give another --path"
        ) from problem


def _check_checkpoint(
    spark: SparkSession,
    source: Mapping[str, str],
    path: str,
    checkpoint: str,
    topics: Iterable[str],
    manifest: ArchiveManifest,
) -> Offsets | None:
    finished = read_finished_offsets(spark, checkpoint)
    if finished is None:
        return None
    if read_query_id(spark, checkpoint) not in manifest.queries:
        raise PipelineError(
            f"the checkpoint {checkpoint} is not that of the archive in {path}: give another --checkpointLocation "
            "(even with a new one nothing is archived twice, since the archive knows its offsets)"
        )
    others = sorted({partition.topic for partition in finished} - set(topics))
    if others and "subscribePattern" not in source:
        raise PipelineError(
            f"the checkpoint {checkpoint} has read {others[0]}, which is not among the topics now: "
            "name it too, or give another --checkpointLocation"
        )
    return finished


def source_partitions(cluster: Cluster, source: Mapping[str, str], topics: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions that *source* reads of its topics."""
    if "assign" not in source:
        return cluster.partitions(topics)
    assigned = json.loads(source["assign"]).items()
    return [TopicPartition(topic, number) for topic, numbers in assigned for number in numbers]


def _check_still_there(
    cluster: Cluster, source: Mapping[str, str], partitions: Iterable[TopicPartition], manifest: ArchiveManifest
) -> None:
    """Raise PipelineError if records left a topic before they were archived.

    Spark finds that out from its checkpoint. Without one the manifest says where to continue.
    """
    if source.get("failOnDataLoss", "true") == "false":
        return
    archived = manifest.ends()
    ends = {partition: archived[partition] for partition in partitions if partition in archived}
    for partition, earliest in cluster.offsets(ends, OffsetSpec.EARLIEST).items():
        if earliest > ends[partition]:
            raise PipelineError(
                f"offsets {ends[partition]} to {earliest - 1} of {partition.topic}-{partition.partition} "
                "are gone and were not archived: "
                "give --failOnDataLoss false to continue after them"
            )


def continue_after_archived(
    cluster: Cluster, source: Mapping[str, str], partitions: Sequence[TopicPartition], manifest: ArchiveManifest
) -> Mapping[str, str]:
    """Return the source's options with the offsets at which an archive continues whose checkpoint was lost.

    Instead of at the latest offset it begins at the end of what was archived. Instead of at the earliest offset it
    begins at the end of the archived interval that holds the earliest one.
    """
    starting = source.get("startingOffsets", "latest").lower()
    covered = {partition: manifest.covered[partition] for partition in partitions if partition in manifest.covered}
    if starting not in ("earliest", "latest") or not covered:
        return source
    if starting == "latest":
        offsets = {partition: covered[partition][-1][1] if partition in covered else LATEST for partition in partitions}
    else:
        earliest = cluster.offsets(covered, OffsetSpec.EARLIEST)
        offsets = {
            partition: end_of_interval_at(earliest.get(partition, EARLIEST), covered.get(partition, []))
            for partition in partitions
        }
    return {**source, "startingOffsets": format_offsets(offsets)}


def end_of_interval_at(earliest: int, covered: Iterable[Interval]) -> int:
    """Return the end of the interval that holds the earliest offset; EARLIEST if none holds it."""
    return next((until for first, until in covered if first <= earliest < until), EARLIEST)
