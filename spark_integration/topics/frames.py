"""Frames that are read several times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def persist_frame(frame: DataFrame) -> Iterator[DataFrame]:
    """Let the executors keep a frame for the block, in memory as far as it fits."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()
