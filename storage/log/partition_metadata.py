"""partition.metadata: the id of the topic that a partition's folder belongs to. Format: docs/format/checkpoints.md."""

from __future__ import annotations

import os

from kafkacompat.storage.files.checkpoints import CorruptCheckpointError, replace_file
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.wire.primitives import ZERO_UUID, format_uuid, parse_uuid

FILE_NAME = "partition.metadata"


def write_partition_metadata(files: Files, directory: str, topic_id: bytes) -> None:
    """Write the file. [disk]"""
    data = f"version: 0\ntopic_id: {format_uuid(topic_id)}".encode()
    replace_file(files, os.path.join(directory, FILE_NAME), data)


def read_partition_metadata(files: Files, directory: str) -> bytes:
    """Read the topic's id; all zeros if the file does not exist. Raises CorruptCheckpointError. [disk]"""
    path = os.path.join(directory, FILE_NAME)
    if not files.exists(path):
        return ZERO_UUID
    lines = files.read(path).decode("utf-8", "replace").splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    try:
        return parse_uuid(fields["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise CorruptCheckpointError(f"{path} does not name a topic id") from error
