"""The pipeline `archive`: all checks come first, then a query whose batches are commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_integration.archive.batches import ArchiveBatchWriter, check_topic_ids
from spark_integration.archive.checks import check_before_archiving, concurrent_writer_warning
from spark_integration.archive.compaction import FileMerge, ManifestMerge, TableMerge
from spark_integration.archive.ledger import ArchiveLedger, ArchiveStore
from spark_integration.archive.parquet import ParquetStore
from spark_integration.archive.settings import DEFAULTS, FileOptions
from spark_integration.archive.tables import DeltaStore, IcebergStore
from spark_integration.queries.console import say
from spark_integration.queries.query import run_query
from spark_integration.queries.settings import StreamOptions
from spark_integration.queries.summary import Summary
from spark_integration.state.archives import is_archive, read_manifest
from spark_integration.state.files import HadoopFiles
from spark_integration.state.manifest import DESCRIPTION, ArchiveDescription
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.source import read_stream

STORES: Mapping[str, Callable[..., ArchiveStore]] = {
    "parquet": ParquetStore,
    "delta": DeltaStore,
    "iceberg": IcebergStore,
}


@dataclass(frozen=True)
class ArchiveSummary(Summary):
    """What a run has added. *offsets_there_already* were in Spark's plan and in the archive, and were skipped."""

    records: int
    batches: int
    files: int | None
    offsets_there_already: int
    topics: int


def archive(
    spark: SparkSession,
    source: Mapping[str, str],
    path: str,
    stream: StreamOptions,
    *,
    format: str | None = None,
    partition_by: Sequence[str] | None = None,
    files: FileOptions = DEFAULTS,
) -> ArchiveSummary:
    """Bring the records of *source* (options of Spark's Kafka source) into the archive at *path*, each offset once.

    *format* is parquet, delta or iceberg; *partition_by* are the columns that folders are named by. By default they are
    those of the archive at *path*, for a new archive parquet and topic, date. If the topics, the path, the checkpoint
    or the options do not fit, raises PipelineError before anything is written. Also raises Spark's own errors.
    """
    with Cluster(spark, source) as cluster:
        checked = check_before_archiving(spark, cluster, source, path, stream, format, partition_by, files)
        if warning := concurrent_writer_warning(HadoopFiles(spark, path).uri):
            say(warning)
        ledger, store = _open_ledger(spark, path, checked.description, files)
        # Checked again, since the ledger may have finished a killed run's commit of such a topic.
        check_topic_ids(ledger.topic_ids, checked.topic_ids)
        tidy = _choose_merges(spark, HadoopFiles(spark, path), ledger, store, files)
        batches = ArchiveBatchWriter(spark, cluster, ledger, stream.checkpoint_location, files.tasks, tidy)
        writer = read_stream(spark, checked.source).writeStream.foreachBatch(batches)
        try:
            tally = run_query(spark, writer, stream, name="archive", cluster=cluster)
        except StreamingQueryException:
            if batches.failure is not None:
                raise batches.failure from None
            raise
    written = batches.files if checked.description.format == "parquet" else None
    return ArchiveSummary(batches.records, tally.batches, written, batches.already_archived, len(batches.topics))


def _open_ledger(
    spark: SparkSession, path: str, description: ArchiveDescription, files: FileOptions
) -> tuple[ArchiveLedger, ArchiveStore]:
    folder = HadoopFiles(spark, path)
    store = STORES[description.format](spark, folder, description.partition_by, files.max_records_per_file)
    if not is_archive(spark, path):
        folder.write_new(DESCRIPTION, description.as_json())
    store.create()
    return ArchiveLedger(folder, read_manifest(spark, path), store), store


def _choose_merges(
    spark: SparkSession, folder: HadoopFiles, ledger: ArchiveLedger, store: ArchiveStore, files: FileOptions
) -> Callable[[], None]:
    merge_manifest = ManifestMerge(spark, folder, ledger)
    if not files.merge_files:
        return merge_manifest
    if not isinstance(store, ParquetStore):
        # This makes the manifest short as well, and counts batches by it.
        return TableMerge(spark, folder, ledger, files.merge_files)
    merge_files = FileMerge(spark, folder, ledger, files.merge_files, files.target_file_size_bytes)

    def both() -> None:
        merge_files()
        merge_manifest()

    return both
