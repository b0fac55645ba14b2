"""What a streaming query's checkpoint says it has finished (Spark's offset log and commit log)."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_integration.offsets import Offsets, offsets_of_json


def finished_offsets(spark: SparkSession, checkpoint: str, source: int = 0) -> Offsets | None:
    """Return where the last committed batch ended for the source of that number; None before the first one.

    A batch counts once it is in ``commits``: one that is only in ``offsets`` was planned, and Spark runs it again.
    """
    jvm: Any = spark._jvm
    folder = jvm.org.apache.hadoop.fs.Path(checkpoint)
    file_system = folder.getFileSystem(spark._jsc.hadoopConfiguration())
    commits = jvm.org.apache.hadoop.fs.Path(folder, "commits")
    if not file_system.exists(commits):
        return None
    batches = [int(name) for name in _names(file_system, commits) if name.isdigit()]
    if not batches:
        return None
    text = _text(jvm, file_system, jvm.org.apache.hadoop.fs.Path(folder, f"offsets/{max(batches)}"))
    # A line for the version, one of metadata, then one for each source.
    return offsets_of_json(text.splitlines()[2 + source])


def _names(file_system: Any, folder: Any) -> list[str]:
    return [str(status.getPath().getName()) for status in file_system.listStatus(folder)]


def _text(jvm: Any, file_system: Any, path: Any) -> str:
    stream = file_system.open(path)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
