"""partition.metadata: which topic, by id, a partition's folder belongs to. Format: docs/format/checkpoints.md."""

from __future__ import annotations

import base64
import binascii
import os

from kafkacompat.storage.checkpoints import CorruptCheckpointError, replace_file
from kafkacompat.storage.filesystem import Files
from kafkacompat.wire.primitives import ZERO_UUID

FILE_NAME = "partition.metadata"


def uuid_text(uuid: bytes) -> str:
    """A UUID as Kafka writes it: base64 for URLs without padding."""
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a UUID in Kafka's spelling; ValueError when it is none."""
    try:
        uuid = base64.urlsafe_b64decode(text + "==")
    except binascii.Error as error:
        raise ValueError(f"{text!r} is no UUID") from error
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is no UUID")
    return uuid


def write_partition_metadata(files: Files, directory: str, topic_id: bytes) -> None:
    """Write the file. [disk]"""
    data = f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()
    replace_file(files, os.path.join(directory, FILE_NAME), data)


def read_partition_metadata(files: Files, directory: str) -> bytes:
    """The topic's id; all zeros when there is no file. Raises CorruptCheckpointError. [disk]"""
    path = os.path.join(directory, FILE_NAME)
    if not files.exists(path):
        return ZERO_UUID
    lines = files.read(path).decode("utf-8", "replace").splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    try:
        return uuid_bytes(fields["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise CorruptCheckpointError(f"{path} does not name a topic id") from error
