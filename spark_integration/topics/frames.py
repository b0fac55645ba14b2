"""Frames that are read more than once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def persist_frame(frame: DataFrame) -> Iterator[DataFrame]:
    """Have the executors keep a frame while the block goes on, in memory as far as they go."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()
