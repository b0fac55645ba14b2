"""Frames over topics, read with Spark's Kafka source."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from spark_integration.errors import PipelineError
from spark_integration.topics.cluster import Cluster

# Options that name what is read: a source has one of them.
STRATEGIES = ("subscribe", "subscribePattern", "assign")
# Spark's readers ask for the two ends of a partition after each poll; by default that is every 500 records.
DEFAULTS = {"includeHeaders": "true", "kafka.max.poll.records": "5000"}


def read_stream(spark: SparkSession, source: Mapping[str, str]) -> DataFrame:
    """Return a streaming frame of the records, headers included (columns: Spark Kafka guide)."""
    return spark.readStream.format("kafka").options(**{**DEFAULTS, **source}).load()


def read_batch(spark: SparkSession, source: Mapping[str, str]) -> DataFrame:
    """Return a frame of the records that exist now, headers included (columns: Spark Kafka guide)."""
    return spark.read.format("kafka").options(**{**DEFAULTS, **source}).load()


def find_source_topics(cluster: Cluster, source: Mapping[str, str]) -> list[str]:
    """Return the topics that *source* reads; raises PipelineError for a missing one.

    Spark itself would wait for it, or fail late.
    """
    if "subscribe" in source:
        names = [name.strip() for name in source["subscribe"].split(",") if name.strip()]
        return list(cluster.require(names))
    if "assign" in source:
        return list(cluster.require(_assigned_topics(source["assign"])))
    names = cluster.find_matching_topics(source["subscribePattern"])
    if not names:
        raise PipelineError(
            f"no topic matches {source['subscribePattern']!r} on {cluster.bootstrap}: correct the pattern"
        )
    return names


def _assigned_topics(text: str) -> list[str]:
    try:
        return list(json.loads(text).keys())
    except (ValueError, AttributeError) as problem:
        raise PipelineError(f'{text!r} assigns no partitions: give partitions as {{"topic":[0,1]}}') from problem
