"""How far Kafka's controllers had written when this broker took a log directory over: `kafkacompat-takeover`.

The file holds the base offset and the size in bytes of the last segment of `__cluster_metadata-0`. While both still
are what they were, Kafka has not run since, and its metadata is older than ours. Everything here is a disk operation.
"""

from __future__ import annotations

import os

from kafkacompat.storage.directory.cluster_metadata import FOLDER
from kafkacompat.storage.files.checkpoints import CorruptCheckpointError, read_lines, write_lines
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.segment_files import last_segment

FILE_NAME = "kafkacompat-takeover"


def has_cluster_metadata(files: Files, directory: str) -> bool:
    """Whether Kafka's controllers wrote to a directory."""
    return files.is_directory(os.path.join(directory, FOLDER))


def is_marked(files: Files, directory: str) -> bool:
    """Whether the directory was taken over before."""
    return files.exists(os.path.join(directory, FILE_NAME))


def is_unchanged(files: Files, directory: str) -> bool:
    """Whether Kafka's controllers wrote nothing since the mark was made; False without a mark that can be read."""
    return _marked(files, directory) == _now(files, directory).split()


def is_older(files: Files, directory: str) -> bool:
    """Whether what the controllers wrote may be older than ours: there is a mark, and it does not say that they went on."""
    return is_marked(files, directory) and _marked(files, directory) in (None, _now(files, directory).split())


def _marked(files: Files, directory: str) -> list[str] | None:
    """What the mark says; None without one that can be read."""
    try:
        lines = read_lines(files, os.path.join(directory, FILE_NAME), 2)
    except CorruptCheckpointError:
        return None
    return lines[0] if lines else None


def mark(files: Files, directory: str) -> None:
    """Note how far they have written."""
    write_lines(files, os.path.join(directory, FILE_NAME), [_now(files, directory)])


def _now(files: Files, directory: str) -> str:
    base_offset, size_bytes = last_segment(files, os.path.join(directory, FOLDER))
    return f"{base_offset} {size_bytes}"
