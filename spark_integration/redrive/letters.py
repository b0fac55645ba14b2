"""Dead letters taken apart: the record as it was, its origin, and the reason why `validate` could not decode it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.errors import PipelineError, explain_failure
from spark_integration.redrive.settings import COLUMNS
from spark_integration.topics.casts import try_cast
from spark_integration.topics.cluster import Cluster, OffsetSpec, TopicDescription
from spark_integration.topics.offsets import Offsets
from spark_integration.topics.origin import HEADERS_TYPE, TOPIC, add_origin_columns
from spark_integration.topics.origin import PREFIX as ORIGIN
from spark_integration.topics.written import read_between
from spark_integration.validate.outputs import DETAIL, REASON

# Headers after a record's own ones and those of its origin: the dead letter that it was. A letter that was redriven
# several times has them several times.
PREFIX = "kafkacompat-redriven-"
PLACE = ("topic", "partition", "offset")
LETTER = ("letter_topic", "letter_partition", "letter_offset")
LETTER_TYPE = "letter_topic string, letter_partition int, letter_offset bigint"


def split_letters(records: DataFrame) -> DataFrame:
    """Split records of a dead-letter topic into `COLUMNS`, `LETTER` and `origin`; `reason` is null if one is no letter."""
    headers = sql.coalesce("headers", sql.array().cast(HEADERS_TYPE))
    named = add_origin_columns(records).withColumns({"headers": headers, "own": _own_headers()})
    added = sql.slice("headers", sql.size("own") + 1, sql.size("headers"))
    split = named.withColumn("added", sql.when(sql.size("own") < sql.size("headers"), added))
    is_letter = sql.col("added").isNotNull() & sql.col("origin_offset").isNotNull()
    return split.select(
        "key",
        "value",
        *(sql.col(name).alias(f"letter_{name}") for name in PLACE),
        *(sql.col(f"origin_{name}").alias(name) for name in (*PLACE, "timestamp")),
        sql.when(is_letter, _added_text(REASON)).alias("reason"),
        _added_text(DETAIL).alias("detail"),
        sql.size(sql.filter("own", lambda header: header["key"] == f"{PREFIX}topic")).alias("redriven"),
        sql.col("own").alias("headers"),
        sql.filter("added", lambda header: header["key"].startswith(ORIGIN)).alias("origin"),
    )


def _own_headers() -> Column:
    """Return the headers that `validate` did not add: those before the last origin."""
    keys = sql.transform("headers", lambda header: header["key"])
    from_end = sql.array_position(sql.reverse(keys), TOPIC)
    count = sql.when(from_end > 0, sql.size("headers") - from_end).otherwise(sql.size("headers"))
    return sql.slice("headers", sql.lit(1), count.cast("int"))


def _added_text(name: str) -> Column:
    named = sql.filter("added", lambda header: header["key"] == name)
    return sql.get(named, sql.lit(0))["value"].cast("string")


def choose_letters(letters: DataFrame, where: str, repair: str | None) -> DataFrame:
    """Add `chosen` (null for a record that is no dead letter), and repair the value; raises PipelineError."""
    with _explained_sql("--where", where):
        fits = sql.coalesce(sql.expr(where).cast("boolean"), sql.lit(False))
        chosen = letters.withColumn("chosen", sql.when(sql.col("reason").isNotNull(), fits))
    if repair is None:
        return chosen
    with _explained_sql("--repair", repair):
        return chosen.withColumn("value", sql.when(sql.col("chosen"), sql.expr(repair).cast("binary")))


@contextmanager
def _explained_sql(option: str, expression: str) -> Iterator[None]:
    try:
        yield
    except PySparkException as problem:
        raise PipelineError(
            f"{option} {expression!r} is no SQL over {', '.join(COLUMNS)} ({explain_failure(problem)}): correct it"
        ) from problem


def redriven_records(letters: DataFrame, topics: Mapping[str, TopicDescription], to: str | None) -> DataFrame:
    """Return the records to write: own headers, origin, and which dead letter each was.

    Each goes into its origin's partition if its topic still has it; otherwise, and in the topic *to*, by its key.
    """
    place = sql.array(*(_make_header(PREFIX + name.removeprefix("letter_"), sql.col(name)) for name in LETTER))
    headers = sql.concat("headers", "origin", place.cast(HEADERS_TYPE))
    records = letters.withColumn("headers", headers)
    if to is not None:
        return records.select("key", "value", "headers", sql.lit(to).alias("topic"))
    exists = sql.lit(False)
    for name, topic in topics.items():
        exists = exists | ((sql.col("topic") == name) & (sql.col("partition") < topic.partitions))
    return records.select("key", "value", "headers", "topic", sql.when(exists, sql.col("partition")).alias("partition"))


def _make_header(name: str, value: Column) -> Column:
    return sql.struct(sql.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))


def find_redriven(spark: SparkSession, target: Mapping[str, str], begin: Offsets) -> DataFrame:
    """Return which dead letters (`LETTER`) are in the topics of *target* from the offsets *begin* on."""
    with Cluster(spark, target) as cluster:
        end = cluster.offsets(begin, OffsetSpec.LATEST)
    records = read_between(spark, target, begin, end).select("headers")
    columns = {name: _last_text(PREFIX + name.removeprefix("letter_")) for name in LETTER}
    typed = [
        try_cast(columns[name], kind).alias(name)
        for name, kind in zip(LETTER, ("string", "int", "bigint"), strict=True)
    ]
    return records.select(*typed).where("letter_offset is not null")


def _last_text(name: str) -> Column:
    named = sql.filter("headers", lambda header: header["key"] == name)
    return sql.get(sql.reverse(named), sql.lit(0))["value"].cast("string")
