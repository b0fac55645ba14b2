"""Small files that are written as a whole, and Kafka's text format for checkpoints.

Format: docs/format/checkpoints.md. Everything here is a disk operation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kafkacompat.storage.files.filesystem import Files

VERSION = "0"
TEMPORARY_SUFFIX = ".tmp"

PartitionOffsets: TypeAlias = Mapping[tuple[str, int], int]
"""(topic, partition) -> offset."""


class CorruptCheckpointError(Exception):
    """A checkpoint file is not in the checkpoint format."""


def overwrite_file(files: Files, path: str, *pieces: bytes) -> None:
    """Write and sync a file. A crash may leave half of it: use it where the reader notices that and rebuilds the file."""
    file = files.open(path, create=True)
    try:
        file.truncate(0)
        for data in pieces:
            file.append((data,), len(data))
        file.sync()
    finally:
        file.close()


def replace_file(files: Files, path: str, data: bytes) -> None:
    """Replace a file's contents atomically: after a crash it holds the old contents or the new."""
    temporary = path + TEMPORARY_SUFFIX
    overwrite_file(files, temporary, data)
    files.rename(temporary, path)
    files.sync_directory(os.path.dirname(path))


def write_checkpoint(files: Files, path: str, entries: Iterable[str]) -> None:
    """Write a checkpoint: a line each for the version, the number of entries and every entry."""
    lines = list(entries)
    replace_file(files, path, "".join(f"{line}\n" for line in (VERSION, len(lines), *lines)).encode())


def read_checkpoint(files: Files, path: str, fields: int) -> list[list[str]]:
    """Read a checkpoint's entries, each split into `fields` words; [] if the file does not exist.

    Raises CorruptCheckpointError.
    """
    if not files.exists(path):
        return []
    lines = files.read(path).decode("utf-8", "replace").splitlines()
    if len(lines) < 2:
        return []
    if lines[0] != VERSION:
        raise CorruptCheckpointError(f"{path} has version {lines[0]!r}; only version {VERSION} is known")
    entries = [line.split() for line in lines[2:]]
    if lines[1] != str(len(entries)) or any(len(entry) != fields for entry in entries):
        raise CorruptCheckpointError(f"{path} does not hold the {lines[1]} lines of {fields} words that it announces")
    return entries


def write_offsets(files: Files, path: str, offsets: PartitionOffsets) -> None:
    """Write an offset checkpoint: topic, partition and offset a line."""
    write_checkpoint(files, path, (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()))


def read_offsets(files: Files, path: str) -> dict[tuple[str, int], int]:
    """Read an offset checkpoint; {} if the file does not exist. Raises CorruptCheckpointError."""
    entries = read_checkpoint(files, path, 3)
    try:
        return {(topic, int(partition)): int(offset) for topic, partition, offset in entries}
    except ValueError as error:
        raise CorruptCheckpointError(f"{path}: {error}") from error
