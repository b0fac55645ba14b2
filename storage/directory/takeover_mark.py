"""The mark of a takeover, `kafkacompat-takeover`: where the log of Kafka's controllers ended at that time.

The file has the base offset and the size in bytes of the last segment of `__cluster_metadata-0`. If both are unchanged,
Kafka has not run since, and its metadata is older than ours. Everything here is a disk operation.
"""

from __future__ import annotations

import os

from kafkacompat.storage.directory.cluster_metadata import CLUSTER_METADATA_FOLDER
from kafkacompat.storage.files.checkpoints import CorruptCheckpointError, read_checkpoint, write_checkpoint
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.segment_files import find_last_segment

FILE_NAME = "kafkacompat-takeover"


def has_cluster_metadata(files: Files, directory: str) -> bool:
    """Return whether a directory has the log of Kafka's controllers."""
    return files.is_directory(os.path.join(directory, CLUSTER_METADATA_FOLDER))


def is_taken_over(files: Files, directory: str) -> bool:
    """Return whether the directory was taken over before."""
    return files.exists(os.path.join(directory, FILE_NAME))


def is_metadata_unchanged(files: Files, directory: str) -> bool:
    """Return whether Kafka's controllers have written nothing since the mark; False without a readable mark."""
    return _read_mark(files, directory) == _compose_mark(files, directory).split()


def may_be_older_metadata(files: Files, directory: str) -> bool:
    """Return whether the controllers' metadata may be older than ours: a mark exists and shows no later writes."""
    return is_taken_over(files, directory) and _read_mark(files, directory) in (
        None,
        _compose_mark(files, directory).split(),
    )


def _read_mark(files: Files, directory: str) -> list[str] | None:
    """Read the mark; None without a readable one."""
    try:
        lines = read_checkpoint(files, os.path.join(directory, FILE_NAME), 2)
    except CorruptCheckpointError:
        return None
    return lines[0] if lines else None


def write_takeover_mark(files: Files, directory: str) -> None:
    """Write the mark of the current end."""
    write_checkpoint(files, os.path.join(directory, FILE_NAME), [_compose_mark(files, directory)])


def _compose_mark(files: Files, directory: str) -> str:
    base_offset, size_bytes = find_last_segment(files, os.path.join(directory, CLUSTER_METADATA_FOLDER))
    return f"{base_offset} {size_bytes}"
