"""The compacted topic of a rollup's results, and the topic of records that cannot be parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.errors import PipelineError
from spark_integration.rollup.events import REASON
from spark_integration.rollup.settings import RollupSettings
from spark_integration.topics.client_settings import KAFKA
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.origin import HEADERS_TYPE, add_origin
from spark_integration.topics.sink import json_options, write_batch
from spark_integration.topics.source import find_source_topics

POLICY = "cleanup.policy"
# The same header as that of `validate`.
REASON_HEADER = "kafkacompat-dead-letter-reason"
# Windows begin and end at whole milliseconds.
JSON = json_options(fraction_digits=3)


def upsert_records(rows: DataFrame, rollup: RollupSettings) -> DataFrame:
    """Return results as records: key and value are JSON objects; the key has the window's start and the dimensions."""
    return rows.select(_json_column(rollup.key_columns).alias("key"), _json_column(rollup.value_columns).alias("value"))


def tombstone_records(rows: DataFrame, rollup: RollupSettings) -> DataFrame:
    """Return records without a value, by which compaction removes these results (KIP-58)."""
    return rows.select(_json_column(rollup.key_columns).alias("key"), sql.lit(None).cast("binary").alias("value"))


def dead_letter_records(dead: DataFrame) -> DataFrame:
    """Return records that cannot be parsed, unchanged but for headers that tell their origin and the reason."""
    reason = sql.struct(sql.lit(REASON_HEADER).alias("key"), sql.col(REASON).cast("binary").alias("value"))
    headers = sql.concat("headers", sql.array(reason).cast(HEADERS_TYPE))
    return add_origin(dead).withColumn("headers", headers).select("key", "value", "headers")


def write_to_topic(records: DataFrame, source: Mapping[str, str], topic: str) -> None:
    """Write records to a topic of the source's cluster; returns when the broker has them all."""
    write_batch(records, {**client_options(source), "topic": topic})


def client_options(source: Mapping[str, str]) -> dict[str, str]:
    """Return those of Spark's options that tell how the cluster is reached, and not what is read."""
    return {name: value for name, value in source.items() if name.startswith(KAFKA)}


def check_topics(cluster: Cluster, rollup: RollupSettings, source: Mapping[str, str], begun: bool) -> None:
    """Raise PipelineError for topics that would be both read and written, or that would lose last values."""
    written = [rollup.topic, *([rollup.dead_topic] if rollup.dead_topic else [])]
    read = find_source_topics(cluster, source)
    if both := [name for name in written if name in read or _would_be_read(cluster, name, source)]:
        raise PipelineError(f"{both[0]} is read and would be written: give other topics as --topic and --dead-topic")
    if len(set(written)) != len(written):
        raise PipelineError(f"{rollup.topic} would take results and dead letters: give --dead-topic another one")
    exists = rollup.topic in cluster.topics([rollup.topic])
    if begun and not exists:
        raise PipelineError(
            f"the topic {rollup.topic} is gone, and with it all earlier results: restore it, or start over with "
            "another --checkpointLocation and --path"
        )
    if exists and not rollup.any_cleanup_policy:
        _check_compacted(cluster, rollup)


def _would_be_read(cluster: Cluster, name: str, source: Mapping[str, str]) -> bool:
    """Return whether a topic that may not exist yet would be read as well."""
    return "subscribePattern" in source and bool(cluster.names_matching(source["subscribePattern"], [name]))


def _check_compacted(cluster: Cluster, rollup: RollupSettings) -> None:
    policy = cluster.topic_configs(rollup.topic, with_defaults=True)[POLICY]
    if "compact" not in policy.split(","):
        raise PipelineError(
            f"the topic {rollup.topic} has {POLICY}={policy}, so that last values are lost or kept for ever: "
            f"set it to compact, give another --topic, or --any-cleanup-policy"
        )


def create_topics(cluster: Cluster, rollup: RollupSettings) -> None:
    """Create the missing topics, the one of results compacted."""
    cluster.create_topic(rollup.topic, rollup.partitions, {POLICY: "compact"})
    if rollup.dead_topic:
        cluster.create_topic(rollup.dead_topic, rollup.partitions)


def _json_column(names: Iterable[str]) -> Column:
    return sql.to_json(sql.struct(*names), JSON)
