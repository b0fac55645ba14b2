"""meta.properties: the node and cluster that a log directory belongs to. Format: docs/format/checkpoints.md."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafkacompat.storage.files.checkpoints import replace_file
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.wire.primitives import format_uuid, parse_uuid

FILE_NAME = "meta.properties"

_NODE_ID_KEYS = {"0": "broker.id", "1": "node.id"}
_REQUIRED = {"0": (), "1": ("node.id", "cluster.id")}


class LogDirectoryError(Exception):
    """A log directory must not be used; the text says in one sentence why and what to do."""


class MetaProperties(NamedTuple):
    """The owner of a log directory; fields that a file of version 0 leaves out are None."""

    node_id: int | None
    cluster_id: str | None
    directory_id: bytes | None
    version: int = 1


def read_meta_properties(files: Files, directory: str) -> MetaProperties | None:
    """Read a file of version 0 or 1; None if it does not exist. Raises LogDirectoryError. [disk]"""
    path = os.path.join(directory, FILE_NAME)
    if not files.exists(path):
        return None
    try:
        fields = _parse_properties(files.read(path).decode("utf-8", "replace"))
    except OSError as error:
        detail = f"{path} cannot be read ({describe_error(error)}); repair that or use another log directory"
        raise LogDirectoryError(detail) from error
    if not fields:
        raise LogDirectoryError(f"{path} is empty, as half a copy is; restore it or use another log directory")
    if "version" not in fields and "broker.id" not in fields:
        # Taken for a file of version 0 it would be overwritten, and it may be somebody else's.
        detail = f"{path} is no file of a Kafka log directory (it names no version and no broker); move it away"
        raise LogDirectoryError(f"{detail} or use another log directory")
    version = fields.get("version", "0")
    if version not in _NODE_ID_KEYS:
        raise LogDirectoryError(f"{path} has version {version}, but only 0 and 1 are known; use another log directory")
    missing = [name for name in _REQUIRED[version] if name not in fields]
    if missing:
        raise LogDirectoryError(f"{path} has no {missing[0]}; restore it or use another log directory")
    try:
        return MetaProperties(
            int(fields[_NODE_ID_KEYS[version]]) if _NODE_ID_KEYS[version] in fields else None,
            fields.get("cluster.id"),
            parse_uuid(fields["directory.id"]) if "directory.id" in fields else None,
            int(version),
        )
    except ValueError as error:
        raise LogDirectoryError(f"{path} is damaged ({error}); restore it or use another log directory") from error


def read_owners(files: Files, directories: Iterable[str]) -> list[MetaProperties]:
    """Read the files of those directories that have one. Raises LogDirectoryError. [disk]"""
    owners = (read_meta_properties(files, directory) for directory in directories)
    return [meta for meta in owners if meta is not None]


def find_directory_ids(files: Files, directories: Iterable[str]) -> set[bytes]:
    """Return the ids of those directories that have one. Raises LogDirectoryError. [disk]"""
    return {meta.directory_id for meta in read_owners(files, directories) if meta.directory_id is not None}


def find_cluster_id(files: Files, directories: Sequence[str], node_id: int) -> str | None:
    """Return the cluster of the directories, None if none names one.

    Raises LogDirectoryError if they belong to another node, or to several clusters. [disk]
    """
    owners = [(directory, meta) for directory in directories if (meta := read_meta_properties(files, directory))]
    cluster_id = next((meta.cluster_id for _, meta in owners if meta.cluster_id), None)
    for directory, meta in owners:
        check_owner(directory, meta, node_id, cluster_id)
    return cluster_id


def check_owner(directory: str, meta: MetaProperties, node_id: int, cluster_id: str | None) -> None:
    """Raise LogDirectoryError if a directory belongs to another node or cluster."""
    if meta.node_id not in (None, node_id):
        raise LogDirectoryError(
            f"log directory {directory} belongs to node {meta.node_id}, not {node_id}; set node.id or log.dirs right"
        )
    if meta.cluster_id not in (None, cluster_id):
        raise LogDirectoryError(
            f"log directory {directory} belongs to cluster {meta.cluster_id}, not {cluster_id}; set log.dirs right"
        )


def _parse_properties(text: str) -> dict[str, str]:
    fields = {}
    for line in map(str.strip, text.splitlines()):
        if line and line[0] not in "#!":
            name, _, value = line.partition("=")
            # Java writes a backslash before = and :, and before no other character of these values.
            fields[name.strip()] = value.strip().replace("\\", "")
    return fields


def write_meta_properties(files: Files, directory: str, meta: MetaProperties) -> None:
    """Write the file in its version, without fields that are None. [disk]"""
    fields = {
        "version": meta.version,
        _NODE_ID_KEYS[str(meta.version)]: meta.node_id,
        "cluster.id": meta.cluster_id,
        "directory.id": None if meta.directory_id is None else format_uuid(meta.directory_id),
    }
    text = "#\n" + "".join(f"{name}={value}\n" for name, value in fields.items() if value is not None)
    replace_file(files, os.path.join(directory, FILE_NAME), text.encode())
