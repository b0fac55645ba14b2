"""Topics of one cluster into another, as they are: partitions, order, headers, and a map of the offsets."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError
from spark_integration.mirror.batches import PATIENCE, MirrorBatchWriter, MirrorSide
from spark_integration.mirror.settings import OFFSET_MAP, SPLITTING
from spark_integration.queries.query import run_query
from spark_integration.queries.settings import StreamOptions
from spark_integration.queries.summary import Summary
from spark_integration.state.checkpoint import read_finished_offsets
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.names import TargetNames
from spark_integration.topics.source import find_source_topics, read_stream


@dataclass(frozen=True)
class MirrorSummary(Summary):
    """What a mirror did; records that other producers wrote to the same partitions meanwhile count too."""

    batches: int
    records_written: int
    topics_created: int
    partitions_added: int
    offset_map: str
    # Topics that mirrors of the target made, which are not mirrored back.
    left_out: str | None = None


def mirror(
    spark: SparkSession,
    source: Mapping[str, str],
    target: Mapping[str, str],
    *,
    stream: StreamOptions,
    names: TargetNames | None = None,
    offset_map: str = OFFSET_MAP,
) -> MirrorSummary:
    """Write the records of *source* (options of Spark's Kafka source) to the cluster of *target* (options ``kafka.*``).

    Nothing is lost. Within a partition records keep their order, and a run that continues after a killed one writes
    none twice; docs/SPARK.md says what is promised. The offset map is a topic of the target; a missing one is created.
    Raises PipelineError.
    """
    names = names or TargetNames()
    topics = _check_topics(spark, source, target, stream, names, offset_map)
    with (
        closing(MirrorSide(spark, source, offset_map)) as read,
        closing(MirrorSide(spark, target, offset_map)) as wrote,
    ):
        wrote.map.make(wrote.cluster)
        batches = MirrorBatchWriter(
            spark, read, wrote, names, stream.checkpoint_location, "subscribePattern" not in source
        )
        with closing(batches):
            batches.learn_topics(topics, read_finished_offsets(spark, stream.checkpoint_location) or {})
            writer = read_stream(spark, {**PATIENCE, **source}).writeStream.foreachBatch(batches)
            tally = run_query(spark, writer, stream, name="mirror", cluster=read.cluster)
    made = batches.created
    left_out = ", ".join(sorted(batches.left_out)) or None
    return MirrorSummary(tally.batches, batches.written, made.topics, made.partitions, offset_map, left_out)


def _check_topics(
    spark: SparkSession,
    source: Mapping[str, str],
    target: Mapping[str, str],
    stream: StreamOptions,
    names: TargetNames,
    offset_map: str,
) -> list[str]:
    """Return the existing topics that are to be mirrored; raises PipelineError if they cannot be."""
    # Spark's options ignore case.
    if splitting := [option for option in source if option.lower() in map(str.lower, SPLITTING)]:
        raise PipelineError(f"{splitting[0]} would mix up the order of a partition: leave it out")
    with Cluster(spark, source) as read, Cluster(spark, target) as wrote:
        source_topics = find_source_topics(read, source)
        topics = [topic for topic in source_topics if topic != offset_map]
        renamed = names.check(topics)
        if "subscribePattern" not in source:
            names.check_mapped(topics, "--subscribe and --assign name")
            if topics != source_topics:
                raise PipelineError(f"{offset_map} is an offset map, which is not mirrored: leave it out")
        if read.cluster_id() == wrote.cluster_id() and (same := [name for name in topics if renamed[name] == name]):
            raise PipelineError(f"{same[0]} would be mirrored into itself: give another target, a --prefix or --map")
    return topics
