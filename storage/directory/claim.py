"""Claiming a log directory for this process: its lock and its owner. Everything here is a disk operation."""

from __future__ import annotations

import os

from kafkacompat.storage.directory.meta_properties import (
    LogDirectoryError,
    MetaProperties,
    check_owner,
    read_meta_properties,
    write_meta_properties,
)
from kafkacompat.storage.files.filesystem import DirectoryLockedError, FileLock, Files
from kafkacompat.storage.files.os_errors import describe_error

LOCK_FILE = ".lock"


def lock_log_directory(files: Files, path: str) -> FileLock:
    """Create the directory if absent, and lock it. Raises LogDirectoryError."""
    try:
        _make_directory(files, path)
        return files.lock(os.path.join(path, LOCK_FILE))
    except DirectoryLockedError as error:
        detail = f"log directory {path} is in use by another broker; stop that one or set log.dirs to another directory"
        raise LogDirectoryError(detail) from error
    except OSError as error:
        raise LogDirectoryError(
            f"log directory {path} cannot be used ({describe_error(error)}); set log.dirs to another one"
        ) from error


def _make_directory(files: Files, path: str) -> None:
    """Create a directory and its parents, and sync them."""
    if not files.exists(path):
        parent = os.path.dirname(os.path.abspath(path))
        _make_directory(files, parent)
        files.make_directory(path)
        files.sync_directory(parent)


def claim_log_directory(files: Files, path: str, node_id: int, cluster_id: str, new_directory_id: bytes) -> bytes:
    """Assign the directory to a node of a cluster; returns the directory's id. Raises LogDirectoryError for another's.

    A meta.properties of version 0 keeps its version, and the lack of a cluster id: the Kafka that wrote it reads no other.
    """
    meta = read_meta_properties(files, path) or MetaProperties(None, None, None)
    check_owner(path, meta, node_id, cluster_id)
    directory_id = meta.directory_id or new_directory_id
    claimed = MetaProperties(node_id, cluster_id if meta.version else meta.cluster_id, directory_id, meta.version)
    if claimed != meta:
        write_meta_properties(files, path, claimed)
    return directory_id
