"""Taking a log directory for this process: the lock, and whom the directory belongs to. Everything here is a disk operation."""

from __future__ import annotations

import os

from kafkacompat.storage.filesystem import DirectoryLockedError, Files, Lock
from kafkacompat.storage.meta_properties import LogDirectoryError, read_meta_properties, write_meta_properties

LOCK = ".lock"


def take(files: Files, path: str) -> Lock:
    """Make the directory when absent and lock it; raises LogDirectoryError."""
    try:
        _make_directory(files, path)
        return files.lock(os.path.join(path, LOCK))
    except DirectoryLockedError as error:
        detail = f"log directory {path} is in use by another broker; stop that one or set log.dirs to another directory"
        raise LogDirectoryError(detail) from error
    except OSError as error:
        raise LogDirectoryError(
            f"log directory {path} cannot be used ({error}); set log.dirs to another one"
        ) from error


def _make_directory(files: Files, path: str) -> None:
    """Make a directory and its parents; their names are on the disk when this returns."""
    if not files.exists(path):
        parent = os.path.dirname(os.path.abspath(path))
        _make_directory(files, parent)
        files.make_directory(path)
        files.sync_directory(parent)


def claim(files: Files, path: str, node_id: int, cluster_id: str, new_directory_id: bytes) -> bytes:
    """Give the directory to a node of a cluster, unless it belongs to another; returns the directory's id."""
    meta = read_meta_properties(files, path)
    if meta is not None:
        if meta.node_id not in (None, node_id):
            raise LogDirectoryError(
                f"log directory {path} belongs to node {meta.node_id}, not {node_id}; set node.id or log.dirs right"
            )
        if meta.cluster_id not in (None, cluster_id):
            raise LogDirectoryError(
                f"log directory {path} belongs to cluster {meta.cluster_id}, not {cluster_id}; set log.dirs right"
            )
        if None not in meta and meta.directory_id is not None:
            return meta.directory_id
    directory_id = (meta.directory_id if meta else None) or new_directory_id
    write_meta_properties(files, path, node_id, cluster_id, directory_id)
    return directory_id
