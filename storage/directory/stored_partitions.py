"""The partitions of a log directory, by the names of its folders. Everything here is a disk operation."""

from __future__ import annotations

import os
from typing import NamedTuple

from kafkacompat.storage.directory.cluster_metadata import CLUSTER_METADATA_FOLDER
from kafkacompat.storage.directory.meta_properties import LogDirectoryError
from kafkacompat.storage.directory.partition_folders import parse_folder_name
from kafkacompat.storage.files.checkpoints import CorruptCheckpointError
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log.partition_metadata import read_partition_metadata


class StoredPartition(NamedTuple):
    """A partition with a folder in a log directory; its topic id is all zeros if partition.metadata is missing."""

    topic: str
    partition: int
    topic_id: bytes


def list_stored_partitions(files: Files, root: str) -> list[StoredPartition]:
    """Return every partition with a folder in a log directory, or a link to one.

    Raises LogDirectoryError for a link that leads nowhere: its disk may not be mounted.
    """
    stored = []
    for name in files.list(root):
        folder = os.path.join(root, name)
        partition = parse_folder_name(name)
        if partition and name != CLUSTER_METADATA_FOLDER and _is_there(files, folder):
            stored.append(StoredPartition(*partition, read_topic_id(files, folder)))
    return stored


def _is_there(files: Files, folder: str) -> bool:
    if files.is_directory(folder):
        return True
    if files.target(folder) is None:
        ways = "mount the disk that it leads to, or remove the link to let the partition begin empty"
        raise LogDirectoryError(f"{folder} is a link that leads nowhere: {ways}")
    return False


def read_topic_id(files: Files, folder: str) -> bytes:
    """Return the topic id of a folder, all zeros if it has none. Raises LogDirectoryError if it cannot be read."""
    try:
        return read_partition_metadata(files, folder)
    except CorruptCheckpointError as error:
        advice = "restore it, or remove this file alone to let the partition belong to the topic of its name"
        raise LogDirectoryError(f"{error}; {advice}") from error
