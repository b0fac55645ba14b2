"""The outputs of `validate`: good records go into files and a topic, all others into a topic of dead letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark_integration.topics.cluster import Cluster, OffsetSpec
from spark_integration.topics.offsets import Offsets
from spark_integration.topics.origin import HEADERS_TYPE, add_origin, add_origin_columns
from spark_integration.topics.sink import json_options, sort_partitions, write_batch
from spark_integration.topics.written import read_between
from spark_integration.validate.settings import ValidateOutputs

# Headers beside those of the origin. Several queries may write to one topic, so the query's id tells whose record it
# is.
QUERY = "kafkacompat-validate-query"
REASON = "kafkacompat-dead-letter-reason"
DETAIL = "kafkacompat-dead-letter-detail"
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
# The columns of --path.
TABLE = ("key", "decoded as value", "schemaId", *COLUMNS[2:])
# Values have microseconds.
JSON = json_options(fraction_digits=6)
PLACE = ("topic", "partition", "offset")


def producer_options(source: Mapping[str, str]) -> dict[str, str]:
    """Return those of a source's options that a producer needs: the properties of the Kafka client."""
    return {
        name: value for name, value in source.items() if name.startswith("kafka.") and name != "kafka.isolation.level"
    }


def read_output_ends(cluster: Cluster, outputs: ValidateOutputs) -> Offsets:
    """Return the ends of the topics that are written to."""
    return cluster.offsets(cluster.partitions(outputs.topics), OffsetSpec.LATEST)


def write_files(good: DataFrame, outputs: ValidateOutputs, query_id: str, number: int) -> None:
    """Write a batch into files; a repeated batch replaces its earlier files."""
    if outputs.path is None:
        return
    writer = good.selectExpr(*TABLE).write.format(outputs.format)
    if outputs.format == "delta":
        options = {"txnAppId": f"validate-{query_id}", "txnVersion": str(number), "mergeSchema": "true"}
        writer.mode("append").options(**options).save(outputs.path)
    else:
        writer.mode("overwrite").save(f"{outputs.path.rstrip('/')}/query={query_id}/batch={number}")


def good_records(good: DataFrame, query_id: str) -> DataFrame:
    """Return records with the decoded value as JSON, their own key and headers, and their origin."""
    # to_json takes no single number or text, so an array is formatted and its brackets are removed.
    json = sql.to_json(sql.array("decoded"), JSON)
    # pyspark 3.5 takes no columns in sql.substring.
    value = sql.when(sql.col("decoded").isNotNull(), json.substr(sql.lit(2), sql.length(json) - 2))
    return _add_headers(add_origin(good), {QUERY: sql.lit(query_id)}).withColumn("value", value.cast("binary"))


def dead_letter_records(dead: DataFrame, query_id: str) -> DataFrame:
    """Return the records unchanged, with their origin and the reason in further headers."""
    return _add_headers(
        add_origin(dead), {QUERY: sql.lit(query_id), REASON: sql.col("reason"), DETAIL: sql.col("detail")}
    )


def write_topic(
    records: DataFrame, topic: str, target: Mapping[str, str], before: Offsets | None, now: Offsets, query_id: str
) -> None:
    """Append records to a topic; *before* is its end when the batch first began, None if it never did."""
    if before is not None:
        records = select_lacking(records, _find_written_places(records, topic, target, before, now, query_id))
    write_batch(records.select("key", "value", "headers", sql.lit(topic).alias("topic")), target)


def select_lacking(records: DataFrame, written: DataFrame) -> DataFrame:
    """Return the records whose place is not in *written*, and all later ones of their keys, in order.

    A producer that gives up on a record may have written the key's next ones. A reader that keeps the last value must
    find those after it.
    """
    marked = records.join(written.distinct().withColumn("is_written", sql.lit(True)), list(PLACE), "left")
    key = Window.partitionBy("topic", "partition", "key").orderBy("offset")
    follows_gap = sql.max(sql.col("is_written").isNull()).over(key) & sql.col("key").isNotNull()
    kept = marked.withColumn("follows_gap", follows_gap).where("is_written is null or follows_gap")
    kept = kept.drop("is_written", "follows_gap")
    return sort_partitions(kept, records.sparkSession.sparkContext.defaultParallelism)


def _find_written_places(
    records: DataFrame, topic: str, target: Mapping[str, str], before: Offsets, now: Offsets, query_id: str
) -> DataFrame:
    """Return the places of the records that this query has written to the topic from *before* on."""
    end = {partition: offset for partition, offset in now.items() if partition.topic == topic}
    begin = {partition: before.get(partition, 0) for partition in end}
    records_written = add_origin_columns(read_between(records.sparkSession, target, begin, end).select("headers"))
    ours = sql.exists("headers", _is_header(QUERY, query_id))
    return records_written.where(ours).select(*(sql.col(f"origin_{name}").alias(name) for name in PLACE))


def _is_header(name: str, text: str) -> Callable[[Column], Column]:
    value = sql.lit(text).cast("binary")
    return lambda header: (header["key"] == name) & header["value"].eqNullSafe(value)


def _add_headers(frame: DataFrame, marks: Mapping[str, Column]) -> DataFrame:
    added = [
        sql.struct(sql.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
        for name, value in marks.items()
    ]
    return frame.withColumn("headers", sql.concat("headers", sql.array(*added).cast(HEADERS_TYPE)))
