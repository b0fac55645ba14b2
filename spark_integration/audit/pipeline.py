"""The pipeline `audit`, from its first step to its last."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from spark_integration.audit import windows
from spark_integration.audit.archive_records import read_archive_place
from spark_integration.audit.auditor import Auditor
from spark_integration.audit.conditions import FailureCondition
from spark_integration.audit.kinds import KINDS
from spark_integration.audit.log_batches import LogBatchReader
from spark_integration.audit.ranges import EVERYTHING, find_cuts, resolve_ranges
from spark_integration.audit.report import write_report
from spark_integration.audit.settings import NOTHING_TO_AUDIT, AuditSettings
from spark_integration.audit.summary import AuditSummary, audit_verdict
from spark_integration.audit.topic_records import read_topic_place
from spark_integration.errors import PipelineError
from spark_integration.state.files import HadoopFiles
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.source import find_source_topics


def audit(
    spark: SparkSession,
    source: Mapping[str, str] | None = None,
    *,
    path: str | None = None,
    format: str | None = None,
    settings: AuditSettings | None = None,
    fail_on: Collection[FailureCondition] = (),
    report: Path | None = None,
    counts: str | None = None,
) -> AuditSummary:
    """Judge topics (*source*: options of Spark's Kafka source), an archive (*path*), or both and compare them.

    *report* is a file for HTML; *counts* is a folder for the counts by topic, producer and window, in Parquet. Nothing
    else is written. Raises PipelineError.
    """
    if not source and path is None:
        raise PipelineError(NOTHING_TO_AUDIT)
    _check_targets(spark, report, counts)
    auditor = Auditor(spark, settings or AuditSettings())
    try:
        if source:
            _judge_topics(auditor, source, path, format)
        else:
            auditor.judge_archive(read_archive_place(spark, str(path), auditor.settings.fields, format=format))
        summary = _summarize_audit(auditor, fail_on, with_windows=report is not None)
        if counts is not None:
            windows.count_places_by_window(auditor.places, windows.WIDTHS_MS[0]).write.parquet(counts)
    finally:
        auditor.release()
    if report is not None:
        write_report(report, summary)
    return summary


def _check_targets(spark: SparkSession, report: Path | None, counts: str | None) -> None:
    if counts is not None and HadoopFiles(spark, counts).exists("."):
        raise PipelineError(f"{counts} exists already: give --counts a new folder")
    if report is not None and not report.resolve().parent.is_dir():
        raise PipelineError(f"there is no folder {report.resolve().parent}: make it, or put --report elsewhere")


def _judge_topics(auditor: Auditor, source: Mapping[str, str], path: str | None, format: str | None) -> None:
    fields = auditor.settings.fields
    with Cluster(auditor.spark, source) as cluster:
        names = sorted(find_source_topics(cluster, source))
        compacted_topics = {name for name in names if is_compacted(cluster, name)}
        archive = None
        if path is not None:
            # The archive is read before the topics' ends: a running archive then holds no record that the topics lack.
            archive = read_archive_place(auditor.spark, path, fields, format=format, topics=names, with_contents=True)
        ranges = resolve_ranges(cluster, source)
        place = read_topic_place(auditor.spark, source, ranges, fields, with_contents=archive is not None)
        place = replace(place, cuts=find_cuts(cluster, ranges))
        with LogBatchReader(auditor.spark, cluster, source) as read:
            auditor.judge_topics(place, ranges, read, compacted_topics)
        if archive is not None:
            auditor.judge_archive(archive)
            gone = set(archive.manifest.covered).difference(cluster.partitions(names))
            unread = {partition: EVERYTHING for partition in gone if partition.topic in names}
            to_the_end = not any(name.startswith("ending") for name in source)
            auditor.compare(place, archive, ranges | unread, compacted_topics, to_the_end=to_the_end)


def is_compacted(cluster: Cluster, topic: str) -> bool:
    """Return whether the topic's cleanup.policy may remove records from its middle."""
    return "compact" in cluster.topic_configs(topic, with_defaults=True).get("cleanup.policy", "")


def _summarize_audit(auditor: Auditor, fail_on: Collection[FailureCondition], *, with_windows: bool) -> AuditSummary:
    for row in auditor.topics:
        row["found"] = auditor.findings.of(row["place"], row["topic"])
    counts, width_ms = auditor.findings.total(), windows.fitting_width_ms(auditor.topics)
    by_field = auditor.settings.fields.event_time is not None
    in_time = auditor.places if with_windows else []
    return AuditSummary(
        verdict=audit_verdict(counts, auditor.topics, by_sequence=auditor.settings.fields.sequence is not None),
        failed_on=[clause for condition in fail_on for clause in condition.met(counts, auditor.latency)],
        found=counts,
        topics=auditor.topics,
        latency=auditor.latency,
        producers=auditor.producers,
        details={kind: auditor.findings.details[kind] for kind in KINDS if kind in auditor.findings.details},
        notes=auditor.notes,
        window_ms=width_ms,
        windows=[row for place in in_time for row in windows.window_count_rows(place, width_ms, auditor.producers)],
        latency_windows=[
            row for place in in_time for row in windows.window_latency_rows(place, width_ms, by_field=by_field)
        ],
    )
