"""Small files that are written as a whole, and Kafka's text format for lists of numbers.

Format: docs/format/checkpoints.md. Everything here is a disk operation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kafkacompat.storage.files.filesystem import Files

VERSION = "0"
TEMPORARY_SUFFIX = ".tmp"

Offsets: TypeAlias = Mapping[tuple[str, int], int]
"""(topic, partition) -> offset."""


class CorruptCheckpointError(Exception):
    """A checkpoint file that does not follow its format."""


def overwrite_file(files: Files, path: str, *pieces: bytes) -> None:
    """Write a file that may be half there after a crash, because its reader notices and makes it again."""
    file = files.open(path, create=True)
    try:
        file.truncate(0)
        for data in pieces:
            file.append((data,), len(data))
        file.sync()
    finally:
        file.close()


def replace_file(files: Files, path: str, data: bytes) -> None:
    """Give a file new contents so that a crash leaves the old ones or the new ones, whole."""
    temporary = path + TEMPORARY_SUFFIX
    overwrite_file(files, temporary, data)
    files.rename(temporary, path)
    files.sync_directory(os.path.dirname(path))


def write_lines(files: Files, path: str, entries: Iterable[str]) -> None:
    """Write a checkpoint: version, number of entries, one entry a line."""
    lines = list(entries)
    replace_file(files, path, "".join(f"{line}\n" for line in (VERSION, len(lines), *lines)).encode())


def read_lines(files: Files, path: str, fields: int) -> list[list[str]]:
    """Read a checkpoint's entries, each split into `fields` words; [] when there is no file.

    Raises CorruptCheckpointError.
    """
    if not files.exists(path):
        return []
    lines = files.read(path).decode("utf-8", "replace").splitlines()
    if len(lines) < 2:
        return []
    if lines[0] != VERSION:
        raise CorruptCheckpointError(f"{path} has version {lines[0]!r}, but only version {VERSION} is known")
    entries = [line.split() for line in lines[2:]]
    if lines[1] != str(len(entries)) or any(len(entry) != fields for entry in entries):
        raise CorruptCheckpointError(f"{path} should hold {lines[1]} lines of {fields} words, but does not")
    return entries


def write_offsets(files: Files, path: str, offsets: Offsets) -> None:
    """Write an offset checkpoint of a log directory."""
    write_lines(files, path, (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()))


def read_offsets(files: Files, path: str) -> dict[tuple[str, int], int]:
    """Read an offset checkpoint of a log directory; {} when there is none. Raises CorruptCheckpointError."""
    entries = read_lines(files, path, 3)
    try:
        return {(topic, int(partition)): int(offset) for topic, partition, offset in entries}
    except ValueError as error:
        raise CorruptCheckpointError(f"{path}: {error}") from error
