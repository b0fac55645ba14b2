"""``python -m compat_tests.spark.on_executors MASTER BOOTSTRAP TOPIC``: report the packages of a cluster's executors.

Prints one JSON object: the records as a function of `spark_integration` on the executors saw them, where the executors
have the package's code from, and whether the driver sees Kafka's Admin client.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from spark_integration.session import start_session


def report_batches(batches: Iterable[Any]) -> Iterable[Any]:
    """Add to each record its place as the shipped code formats it, the path of that code, and the working directory."""
    import os

    import pyarrow as pa

    from spark_integration.topics import offsets

    for batch in batches:
        rows = batch.to_pylist()
        places = [{offsets.TopicPartition(row["topic"], row["partition"]): row["offset"]} for row in rows]
        texts = [offsets.format_offsets(place) for place in places]
        size = batch.num_rows
        columns = [batch.column("value"), pa.array(texts), pa.array([offsets.__file__] * size)]
        yield pa.RecordBatch.from_arrays([*columns, pa.array([os.getcwd()] * size)], ["value", "place", "code", "cwd"])


def main(master: str, bootstrap: str, topic: str) -> None:
    """Read the topic on the executors, and print their reports."""
    spark: Any = start_session("on-executors", master=master, memory="512m", configs={"spark.executor.memory": "512m"})
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    read = spark.read.format("kafka").options(**options, minPartitions="8").load()
    texts = read.selectExpr("topic", "partition", "offset", "string(value) as value")
    rows = texts.mapInArrow(report_batches, "value string, place string, code string, cwd string").collect()
    admin = spark._jvm.org.apache.kafka.clients.admin.AdminClient
    json.dump({"admin": type(admin).__name__, "rows": [row.asDict() for row in rows]}, sys.stdout)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
