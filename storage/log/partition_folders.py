"""The folders of partitions that are on their way out of, or into, a log directory. Everything here is a disk operation.

`T-P.<32 digits>-delete` was deleted, `-stray` belongs to no topic, `-future` is a copy of a partition that is to move
here; the names are Kafka's.
"""

from __future__ import annotations

import os
import re

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX, SUFFIXES

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


def last_segment(files: Files, folder: str) -> tuple[int, int]:
    """(base offset, bytes) of a partition's last segment; (-1, 0) when there is none."""
    bases = segment_bases(files, folder)
    return (bases[-1], files.size(log_path(folder, bases[-1]))) if bases else (-1, 0)


def segment_bases(files: Files, folder: str) -> list[int]:
    """The base offsets of the segments that have a log file, ascending."""
    stems = (name.removesuffix(LOG_SUFFIX) for name in files.list(folder) if name.endswith(LOG_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def has_segment_files(files: Files, folder: str) -> bool:
    """Whether any file of a segment is there; of one that was being made when a crash came it may be an index alone."""
    stems = (name.removesuffix(suffix) for name in files.list(folder) for suffix in SUFFIXES if name.endswith(suffix))
    return any(stem.isdigit() for stem in stems)


def log_path(folder: str, base_offset: int) -> str:
    """The log file of a segment."""
    return os.path.join(folder, f"{base_offset:020d}{LOG_SUFFIX}")
