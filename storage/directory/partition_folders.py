"""The folders of partitions that are on their way out of, or into, a log directory. Everything here is a disk operation.

`T-P.<32 digits>-delete` was deleted, `-stray` belongs to no topic, `-future` is a copy of a partition that is to move
here; the names are Kafka's.
"""

from __future__ import annotations

import os
import re

from kafkacompat.storage.files.filesystem import Files

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"

_NUMBER = "0|[1-9][0-9]*"
_PARTITION = re.compile(rf"(.+)-({_NUMBER})")
_COPY = re.compile(rf"(.+)-({_NUMBER})\.[0-9a-f]{{32}}{FUTURE_SUFFIX}")
_DELETED = re.compile(rf".+\.[0-9a-f]{{32}}{DELETE_SUFFIX}")
_MAX_NAME_BYTES = 255


def partition_of(name: str) -> tuple[str, int] | None:
    """Which partition's folder has a name; None for what no broker would call one, as "t-01"."""
    match = _PARTITION.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def random_ending(suffix: str) -> str:
    """What tells apart the folders of one partition."""
    return f".{os.urandom(16).hex()}{suffix}"


def put_aside(files: Files, root: str, folder: str, suffix: str) -> str:
    """Rename a partition's folder in *root*; returns its new name."""
    ending = random_ending(suffix)
    # With a topic's longest name the whole would be too long for a file system.
    name = os.path.basename(folder)[: _MAX_NAME_BYTES - len(ending)] + ending
    files.rename(folder, os.path.join(root, name))
    files.sync_directory(root)
    return name


def remove_deleted(files: Files, root: str, most: int | None = None) -> bool:
    """Remove the folders of deleted partitions, so many at most; returns whether any are left.

    What merely ends like them is somebody else's.
    """
    names = [name for name in files.list(root) if _DELETED.fullmatch(name)]
    for name in names[:most]:
        folder = os.path.join(root, name)
        if files.is_directory(folder):
            for file in files.list(folder):
                files.remove(os.path.join(folder, file))
            files.remove_directory(folder)
    return most is not None and len(names) > most


def copies(files: Files, root: str) -> dict[str, tuple[str, int]]:
    """The folders of copies, and of which partitions they are."""
    matches = {name: _COPY.fullmatch(name) for name in files.list(root)}
    return {os.path.join(root, name): (match[1], int(match[2])) for name, match in matches.items() if match}
