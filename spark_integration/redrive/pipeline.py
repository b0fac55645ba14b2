"""Dead letters written back into the topics that they came from, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from spark_integration.queries.bars import show_job_bar
from spark_integration.queries.summary import Summary
from spark_integration.redrive.ledger import RedriveLedger
from spark_integration.redrive.letters import LETTER, choose_letters, redriven_records, split_letters
from spark_integration.topics.cluster import Cluster, OffsetSpec
from spark_integration.topics.frames import persist_frame
from spark_integration.topics.sink import sort_partitions, write_batch
from spark_integration.topics.written import read_between


@dataclass(frozen=True)
class RedriveSummary(Summary):
    """Letters that were redriven, left out by --where, or redriven by earlier runs, and records that are no letters."""

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

    Key and headers are as they were. So is the value, unless *repair*, an SQL expression over COLUMNS, replaces it.
    *ledger* is a folder that records redriven letters, so that none is written twice. Raises PipelineError.
    """
    with Cluster(spark, cluster_options) as cluster:
        book = RedriveLedger(spark, ledger, cluster.require([dead_letter_topic])[dead_letter_topic])
        book.check(cluster.bootstrap)
        partitions = cluster.partitions([dead_letter_topic])
        begin, end = cluster.offsets(partitions, OffsetSpec.EARLIEST), cluster.offsets(partitions, OffsetSpec.LATEST)
        letters = split_letters(read_between(spark, cluster_options, begin, end))
        return _write_letters(spark, cluster, cluster_options, choose_letters(letters, where, repair), book, to)


def _write_letters(
    spark: SparkSession,
    cluster: Cluster,
    target: Mapping[str, str],
    letters: DataFrame,
    ledger: RedriveLedger,
    to: str | None,
) -> RedriveSummary:
    counts = letters.groupBy("topic", "chosen").count().collect()
    origins = sorted(row.topic for row in counts if row.chosen)
    topics = cluster.require([to] if to and origins else origins)
    rows_written = 0
    if topics:
        with show_job_bar(spark, "redrive"), persist_frame(ledger.read_redriven(target)) as done:
            ledger.begin(cluster.offsets(cluster.partitions(topics), OffsetSpec.LATEST))
            left = letters.where("chosen").join(done, list(LETTER), "left_anti")
            rows = sort_partitions(left, sum(topic.partitions for topic in topics.values())).localCheckpoint()
            write_batch(redriven_records(rows, topics, to), target)
            ledger.finish(rows.select(*LETTER).unionByName(done))
            rows_written = rows.count()
    total = {kind: sum(row["count"] for row in counts if row.chosen is kind) for kind in (True, False, None)}
    return RedriveSummary(rows_written, total[False], total[True] - rows_written, total[None])
