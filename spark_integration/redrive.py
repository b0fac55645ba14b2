"""`kafkacompat spark redrive`: dead letters back into the topics that they came from, each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import click
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.casts import try_cast
from spark_integration.cluster import Cluster, Spec, Topic
from spark_integration.command import pipeline, spark_session
from spark_integration.console import Summary, job_bar
from spark_integration.errors import PipelineError, sentence_of
from spark_integration.files import Files
from spark_integration.frames import persisted
from spark_integration.offsets import Offsets, json_of_offsets, offsets_of_json
from spark_integration.options import SessionOptions, cluster_options, session_options
from spark_integration.origin import HEADERS_TYPE, TOPIC, origin_columns
from spark_integration.origin import PREFIX as ORIGIN
from spark_integration.sink import in_order, write_batch
from spark_integration.validate.outputs import DETAIL, REASON
from spark_integration.written import between

# Behind a record's own headers and those of its origin: the dead letter that it is. One that died again and was
# redriven again has them once for each time.
PREFIX = "kafkacompat-redriven-"
PLACE = ("topic", "partition", "offset")
# The columns that --where and --repair may name.
COLUMNS = ("key", "value", "headers", "reason", "detail", "topic", "partition", "offset", "timestamp", "redriven")
LETTER = ("letter_topic", "letter_partition", "letter_offset")
LETTER_TYPE = "letter_topic string, letter_partition int, letter_offset bigint"


@dataclass(frozen=True)
class RedriveSummary(Summary):
    """Dead letters written back, those that --where leaves out, those of earlier runs, records that are none."""

    redriven: int
    left_out: int
    redriven_before: int
    not_dead_letters: int


def redrive(
    spark: SparkSession,
    cluster_options: Mapping[str, str],
    dead_letter_topic: str,
    ledger: str,
    where: str = "true",
    repair: str | None = None,
    to: str | None = None,
) -> RedriveSummary:
    """Write the dead letters that fit *where* (SQL over COLUMNS) into the topic that each came from, or into *to*.

    Key and headers are as they were, and so is the value unless *repair*, an SQL expression over COLUMNS, makes it anew.
    *ledger* is a folder that says which dead letters were redriven; none is a second time. Raises PipelineError.
    """
    with Cluster(spark, cluster_options) as cluster:
        book = Ledger(spark, ledger, cluster.require([dead_letter_topic])[dead_letter_topic])
        book.check(cluster.bootstrap)
        partitions = cluster.partitions([dead_letter_topic])
        begin, end = cluster.offsets(partitions, Spec.EARLIEST), cluster.offsets(partitions, Spec.LATEST)
        letters = _letters(between(spark, cluster_options, begin, end))
        made = _chosen(letters, where, repair)
        return _redriven(spark, cluster, cluster_options, made, book, to)


def _redriven(
    spark: SparkSession, cluster: Cluster, target: Mapping[str, str], letters: DataFrame, book: Ledger, to: str | None
) -> RedriveSummary:
    counts = letters.groupBy("topic", "chosen").count().collect()
    origins = sorted(row.topic for row in counts if row.chosen)
    topics = cluster.require([to] if to and origins else origins)
    rows_written = 0
    if topics:
        with job_bar(spark, "redrive"), persisted(book.redriven(target)) as done:
            book.begin(cluster.offsets(cluster.partitions(topics), Spec.LATEST))
            left = letters.where("chosen").join(done, list(LETTER), "left_anti")
            rows = in_order(left, sum(topic.partitions for topic in topics.values())).localCheckpoint()
            write_batch(_records(rows, topics, to), target)
            book.finish(rows.select(*LETTER).unionByName(done))
            rows_written = rows.count()
    total = {kind: sum(row["count"] for row in counts if row.chosen is kind) for kind in (True, False, None)}
    return RedriveSummary(rows_written, total[False], total[True] - rows_written, total[None])


def _letters(records: DataFrame) -> DataFrame:
    """Take dead letters apart; `reason` is null where a record is none."""
    headers = sql.coalesce("headers", sql.array().cast(HEADERS_TYPE))
    named = origin_columns(records).withColumns({"headers": headers, "own": _own_headers()})
    added = sql.slice("headers", sql.size("own") + 1, sql.size("headers"))
    split = named.withColumn("added", sql.when(sql.size("own") < sql.size("headers"), added))
    is_letter = sql.col("added").isNotNull() & sql.col("origin_offset").isNotNull()
    return split.select(
        "key",
        "value",
        *(sql.col(name).alias(f"letter_{name}") for name in PLACE),
        *(sql.col(f"origin_{name}").alias(name) for name in (*PLACE, "timestamp")),
        sql.when(is_letter, _text(REASON)).alias("reason"),
        _text(DETAIL).alias("detail"),
        sql.size(sql.filter("own", lambda header: header["key"] == f"{PREFIX}topic")).alias("redriven"),
        sql.col("own").alias("headers"),
        sql.filter("added", lambda header: header["key"].startswith(ORIGIN)).alias("origin"),
    )


def _own_headers() -> Column:
    """Return the headers before those that `validate` has added: all before the last origin."""
    keys = sql.transform("headers", lambda header: header["key"])
    behind = sql.array_position(sql.reverse(keys), TOPIC)
    count = sql.when(behind > 0, sql.size("headers") - behind).otherwise(sql.size("headers"))
    return sql.slice("headers", sql.lit(1), count.cast("int"))


def _text(name: str) -> Column:
    named = sql.filter("added", lambda header: header["key"] == name)
    return sql.get(named, sql.lit(0))["value"].cast("string")


def _chosen(letters: DataFrame, where: str, repair: str | None) -> DataFrame:
    """Add `chosen` (null for what is no dead letter), and the repaired value."""
    with _explained("--where", where):
        fits = sql.coalesce(sql.expr(where).cast("boolean"), sql.lit(False))
        chosen = letters.withColumn("chosen", sql.when(sql.col("reason").isNotNull(), fits))
    if repair is None:
        return chosen
    with _explained("--repair", repair):
        return chosen.withColumn("value", sql.when(sql.col("chosen"), sql.expr(repair).cast("binary")))


@contextmanager
def _explained(option: str, expression: str) -> Iterator[None]:
    try:
        yield
    except PySparkException as problem:
        raise PipelineError(
            f"{option} {expression!r} is no SQL over {', '.join(COLUMNS)} ({sentence_of(problem)}): correct it"
        ) from problem


def _records(rows: DataFrame, topics: Mapping[str, Topic], to: str | None) -> DataFrame:
    """Return what is written: own headers, origin, and which dead letter it was; into its partition, if that is there."""
    place = sql.array(*(_header(PREFIX + name.removeprefix("letter_"), sql.col(name)) for name in LETTER))
    headers = sql.concat("headers", "origin", place.cast(HEADERS_TYPE))
    records = rows.withColumn("headers", headers)
    if to is not None:
        return records.select("key", "value", "headers", sql.lit(to).alias("topic"))
    there = sql.lit(False)
    for name, topic in topics.items():
        there = there | ((sql.col("topic") == name) & (sql.col("partition") < topic.partitions))
    return records.select("key", "value", "headers", "topic", sql.when(there, sql.col("partition")).alias("partition"))


def _header(name: str, value: Column) -> Column:
    return sql.struct(sql.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))


class Ledger:
    """Which dead letters were redriven: ``done/N`` (Parquet) what run N has written, ``begun/N`` that one is under way.

    What a run that was killed has written is found in the topics, from where they ended as it began. ``topics/NAME`` has
    the id of the topic that the dead letters are in, as another one of that name has others at the same offsets.
    """

    def __init__(self, spark: SparkSession, path: str, letters: Topic) -> None:
        self._spark = spark
        self._files = Files(spark, path)
        self._letters = letters
        self._of_topic = f"topics/{letters.name}"

    def check(self, bootstrap: str) -> None:
        """Raise PipelineError where it is of another topic of that name."""
        if self._files.exists(self._of_topic) and self._files.read(self._of_topic) != self._letters.topic_id:
            raise PipelineError(
                f"the ledger {self._files.uri} is of another topic {self._letters.name} than that on {bootstrap}, which "
                "was made anew or is another cluster's: give another --ledger"
            )

    def redriven(self, target: Mapping[str, str]) -> DataFrame:
        """Return the places of the dead letters that were written back."""
        done = self._spark.createDataFrame([], LETTER_TYPE)
        for number in self._files.numbers("done"):
            done = done.unionByName(self._spark.read.schema(LETTER_TYPE).parquet(self._files.path(f"done/{number}")))
        if begin := self._begun():
            done = done.unionByName(_found(self._spark, target, begin))
        return done.distinct()

    def _begun(self) -> Offsets:
        """Return for each partition where it ended when the first of the runs began that did not come to their end."""
        begin: Offsets = {}
        for number in self._files.numbers("begun"):
            for partition, offset in offsets_of_json(self._files.read(f"begun/{number}")).items():
                begin[partition] = min(offset, begin.get(partition, offset))
        return begin

    def begin(self, ends: Offsets) -> None:
        """Say where the topics end that a run is about to write to."""
        if not self._files.exists(self._of_topic):
            self._files.write_new(self._of_topic, self._letters.topic_id)
        numbers = self._files.numbers("begun")
        self._files.write_new(f"begun/{numbers[-1] + 1 if numbers else 0}", json_of_offsets(ends))

    def finish(self, done: DataFrame) -> None:
        """Keep what was written; it takes the place of all that the ledger held."""
        before = self._files.numbers("done")
        number = before[-1] + 1 if before else 0
        done.write.mode("overwrite").parquet(self._files.path(f"done/{number}"))
        for name in [*(f"begun/{one}" for one in self._files.numbers("begun")), *(f"done/{one}" for one in before)]:
            self._files.remove(name)


def _found(spark: SparkSession, target: Mapping[str, str], begin: Offsets) -> DataFrame:
    with Cluster(spark, target) as cluster:
        end = cluster.offsets(begin, Spec.LATEST)
    records = between(spark, target, begin, end).select("headers")
    columns = {name: _last(PREFIX + name.removeprefix("letter_")) for name in LETTER}
    typed = [
        try_cast(columns[name], kind).alias(name)
        for name, kind in zip(LETTER, ("string", "int", "bigint"), strict=True)
    ]
    return records.select(*typed).where("letter_offset is not null")


def _last(name: str) -> Column:
    named = sql.filter("headers", lambda header: header["key"] == name)
    return sql.get(sql.reverse(named), sql.lit(0))["value"].cast("string")


@pipeline("redrive")
@session_options
@cluster_options()
@click.option("--dead-letter-topic", required=True, help="The topic of dead letters that `validate` wrote.")
@click.option("--ledger", required=True, metavar="DIR", help="Where is kept what was redriven; nothing is twice.")
@click.option(
    "--where",
    default="true",
    help=f"Which ones, in SQL over {', '.join(COLUMNS)}: those of the origin.",
)
@click.option("--repair", metavar="SQL", help="What the value becomes; as it is if not given.")
@click.option("--to", metavar="TOPIC", help="Write into this topic, not into those that they came from.")
def command(
    session: SessionOptions,
    cluster: dict[str, str],
    dead_letter_topic: str,
    ledger: str,
    where: str,
    repair: str | None,
    to: str | None,
) -> RedriveSummary:
    """Put dead letters back where they came from, once the schema or the code is repaired.

    They go through `validate` again as any other record of their topic. Headers tell which dead letter each was.
    """
    with spark_session("redrive", session) as spark:
        return redrive(spark, cluster, dead_letter_topic, ledger, where, repair, to)
