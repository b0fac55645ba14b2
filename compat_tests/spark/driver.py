"""``python -m compat_tests.spark.driver BOOTSTRAP TOPIC FOLDER``: a Spark driver that copies a topic to Parquet.

It runs until it is killed, in micro-batches of `LIMIT` offsets, and prints nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from spark_integration.session import start_session

LIMIT = 50


def to_parquet(frame: Any, folder: Path) -> Any:
    """Return a writer of partition, offset and value as text to *folder*, which also holds its checkpoint."""
    texts = frame.selectExpr("partition", "offset", "string(value) as value")
    options = {"path": str(folder / "parquet"), "checkpointLocation": str(folder / "parquet-checkpoint")}
    return texts.writeStream.format("parquet").options(**options)


def main(bootstrap: str, topic: str, folder: str) -> None:
    """Copy until killed."""
    session: Any = start_session("driver", master="local[2]", memory="512m", shuffle_partitions=2)
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(LIMIT),
    }
    frame = session.readStream.format("kafka").options(**options).load()
    to_parquet(frame, Path(folder)).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
