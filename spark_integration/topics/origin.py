"""The origin of a record, in headers: Spark's sink cannot set a record's timestamp, nor choose its offset.

A record that `replay`, `mirror` or `validate` writes carries, after its own headers::

    kafkacompat-origin-topic      its topic, UTF-8
    kafkacompat-origin-partition  ASCII decimal
    kafkacompat-origin-offset     ASCII decimal
    kafkacompat-origin-timestamp  ASCII decimal, milliseconds since 1970
    kafkacompat-origin-cluster    the id of the cluster (`mirror` alone)

A record that was copied several times carries them once for each copy. The last ones name the latest source.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.topics.casts import try_cast

PREFIX = "kafkacompat-origin-"
TOPIC, PARTITION, OFFSET, TIMESTAMP, CLUSTER = (
    f"{PREFIX}{name}" for name in ("topic", "partition", "offset", "timestamp", "cluster")
)
HEADERS_TYPE = "array<struct<key:string,value:binary>>"
# The columns that `add_origin_columns` adds, and their types.
COLUMNS = {
    "origin_topic": "string",
    "origin_partition": "int",
    "origin_offset": "bigint",
    "origin_timestamp": "timestamp",
    "origin_cluster": "string",
}


def add_origin(frame: DataFrame, cluster: str | None = None) -> DataFrame:
    """Add the origin to `headers`, from the columns `topic`, `partition`, `offset` and `timestamp`.

    Call it before any of them is changed. `headers` may be null; *cluster* is the id of the cluster that was read.
    """
    values = {
        TOPIC: sql.col("topic"),
        PARTITION: sql.col("partition"),
        OFFSET: sql.col("offset"),
        TIMESTAMP: sql.unix_millis("timestamp"),
        **({CLUSTER: sql.lit(cluster)} if cluster is not None else {}),
    }
    added = sql.array(*(_make_header(name, value) for name, value in values.items()))
    return frame.withColumn("headers", sql.concat(_headers_or_none(), added.cast(HEADERS_TYPE)))


def add_origin_columns(frame: DataFrame) -> DataFrame:
    """Add the columns of `COLUMNS` from `headers`; a column is null if its header is missing or not in decimal."""
    latest = _from_last_origin(_headers_or_none())
    texts = {name: _header_value(latest, PREFIX + name.removeprefix("origin_")).cast("string") for name in COLUMNS}
    return frame.withColumns({name: _cast_text(text, COLUMNS[name]) for name, text in texts.items()})


def has_passed_cluster(cluster: str) -> Column:
    """Whether the record has been in the cluster of that id before, so that a mirror back to it would be a circle."""
    cluster_id = sql.lit(cluster).cast("binary")
    return sql.exists(
        _headers_or_none(), lambda header: (header["key"] == CLUSTER) & header["value"].eqNullSafe(cluster_id)
    )


def _headers_or_none() -> Column:
    return sql.coalesce(sql.col("headers"), sql.array().cast(HEADERS_TYPE))


def _make_header(name: str, value: Column) -> Column:
    return sql.struct(sql.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))


def _from_last_origin(headers: Column) -> Column:
    """Return the headers from the first header of the last origin on; none if there is no origin."""
    backwards = sql.reverse(sql.transform(headers, lambda header: header["key"]))
    # array_position counts from 1 and is 0 if there is none; then the slice begins after the end.
    begin = sql.size(headers) + 1 - sql.array_position(backwards, TOPIC)
    return sql.slice(headers, begin.cast("int"), sql.size(headers))


def _header_value(headers: Column, name: str) -> Column:
    named: Any = sql.filter(headers, lambda header: header["key"] == name)
    return sql.get(named, sql.lit(0))["value"]


def _cast_text(text: Column, kind: str) -> Column:
    if kind == "timestamp":
        return sql.timestamp_millis(try_cast(text, "bigint"))
    return try_cast(text, kind)
