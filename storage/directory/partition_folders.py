"""The names of partition folders in a log directory, with Kafka's endings. Everything here is a disk operation.

`T-P.<32 digits>-delete` was deleted, `-stray` belongs to no topic, and `-future` is a copy of a partition that moves
here.
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


def parse_folder_name(name: str) -> tuple[str, int] | None:
    """Return the partition of a folder's name; None for a name that no broker gives, such as "t-01"."""
    match = _PARTITION.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def make_random_ending(suffix: str) -> str:
    """Return an ending that distinguishes the folders of one partition."""
    return f".{os.urandom(16).hex()}{suffix}"


def rename_partition_folder(files: Files, root: str, folder: str, suffix: str) -> str:
    """Rename a partition's folder in `root` and sync that; returns the new name."""
    ending = make_random_ending(suffix)
    # The longest topic names would make the name too long for a file system.
    name = os.path.basename(folder)[: _MAX_NAME_BYTES - len(ending)] + ending
    files.rename(folder, os.path.join(root, name))
    files.sync_directory(root)
    return name


def remove_deleted_folders(files: Files, root: str, most: int | None = None) -> bool:
    """Remove the folders of deleted partitions, at most `most` (None: all); returns whether any are left.

    Other folders that merely end like them stay.
    """
    names = [name for name in files.list(root) if _DELETED.fullmatch(name)]
    for name in names[:most]:
        folder = os.path.join(root, name)
        if files.is_directory(folder):
            for file in files.list(folder):
                files.remove(os.path.join(folder, file))
            files.remove_directory(folder)
    return most is not None and len(names) > most


def find_copies(files: Files, root: str) -> dict[str, tuple[str, int]]:
    """Return the folders of copies, with their partitions."""
    matches = {name: _COPY.fullmatch(name) for name in files.list(root)}
    return {os.path.join(root, name): (match[1], int(match[2])) for name, match in matches.items() if match}
