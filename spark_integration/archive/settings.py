"""How an archive is split into folders and files. Imports no pyspark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_integration.errors import PipelineError

FORMATS = ("parquet", "delta", "iceberg")
PARTITION_BY = ("topic", "date")
MAY_PARTITION_BY = ("topic", "partition", "date")
MIB = 1 << 20


@dataclass(frozen=True)
class FileOptions:
    """How large files are. *tasks* write a batch (0: as many as Spark runs at a time), each one file in each folder.

    *max_records_per_file*: 0 for any number. If a folder has *merge_files* small files (smaller than half of
    *target_file_size_bytes*), they are merged; 0: never.
    """

    tasks: int = 0
    max_records_per_file: int = 0
    merge_files: int = 0
    target_file_size_bytes: int = 128 * MIB


DEFAULTS = FileOptions()


def check_partition_by(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that folders are named by, each once; raises PipelineError."""
    if wrong := [name for name in names if name not in MAY_PARTITION_BY]:
        raise PipelineError(f"an archive cannot be split by {wrong[0]!r}: choose from {', '.join(MAY_PARTITION_BY)}")
    return tuple(dict.fromkeys(names))
