"""Step 3: a Structured Streaming query over the topic: delays by carrier and hour, checkpointed, into Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import functions as sql

from spark_integration.demo.flights import TOPIC

FIELDS = "carrier string, hour int, dep_delay double, arr_delay double"


class DelaysResult(NamedTuple):
    """What the query read and wrote."""

    processed: int
    rows: list[Any]


def run_delays_query(spark: Any, bootstrap: str, folder: Path) -> DelaysResult:
    """Process all records of the topic once, into Parquet at ``<folder>/delays.parquet``."""
    out = str(folder / "delays.parquet")

    def replace(table: Any, _: int) -> None:
        table.write.mode("overwrite").parquet(out)

    query = (
        _average_delays(_read_flights(spark, bootstrap))
        .writeStream.outputMode("complete")
        .foreachBatch(replace)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    processed = sum(json.loads(progress.json)["numInputRows"] for progress in query.recentProgress)
    rows = spark.read.parquet(out).orderBy(sql.desc("average_delay")).collect()
    return DelaysResult(processed, rows)


def _read_flights(spark: Any, bootstrap: str) -> Any:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    records = source.option("subscribe", TOPIC).option("startingOffsets", "earliest").load()
    parsed = sql.from_json(sql.col("value").cast("string"), FIELDS).alias("flight")
    return records.select(parsed).select("flight.*")


def _average_delays(flights: Any) -> Any:
    return flights.groupBy("carrier", "hour").agg(
        sql.count("*").alias("flights"),
        sql.round(sql.avg("dep_delay"), 1).alias("average_delay"),
        sql.max("dep_delay").alias("longest_delay"),
    )
