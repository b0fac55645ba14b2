"""`kafkacompat metadata export`, and the log directories of a stopped single node."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import click
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.cli.columns import escape_control_characters
from kafkacompat.disk import DirectDisk
from kafkacompat.metadata.codec import CLUSTER_ID
from kafkacompat.metadata.export_file import format_export, read_whole_store
from kafkacompat.metadata.sqlite_store import FILE_NAME, SqliteStore
from kafkacompat.metadata.store import MetadataStore, StoreError
from kafkacompat.metadata.znodes.cluster import decode_cluster_id
from kafkacompat.storage.directory.claim import LOCK_FILE
from kafkacompat.storage.directory.meta_properties import LogDirectoryError, read_owners
from kafkacompat.storage.files.filesystem import DirectoryLockedError
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.files.os_errors import describe_error

EXIT_REFUSED = 1
MOVED_SUFFIX = ".moved-to-zookeeper"

Result = TypeVar("Result")


def export_to_file(file: str, directories: Sequence[str]) -> int:
    """Write the metadata in *directories* to a file, or to standard output for ``-``; returns the exit code."""
    try:
        with StoppedNode.hold(directories) as node:
            values = node.read_metadata()
            if values is None:
                raise StoreError(f"{', '.join(directories)} has no {FILE_NAME}; name the directory that has it")
            node.check_cluster(decode_cluster_id(values[CLUSTER_ID]) if CLUSTER_ID in values else None)
            lines = [f"{line}\n".encode() for line in format_export(values)]
        if file == "-":
            sys.stdout.buffer.writelines(lines)
            sys.stdout.buffer.flush()
        else:
            _write_new(file, lines)
            click.echo(f"Exported {len(values)} keys to {file}", err=True)
    except (StoreError, LogDirectoryError, OSError) as problem:
        click.echo(escape_control_characters(f"kafkacompat: {describe_error(problem)}"), err=True)
        return EXIT_REFUSED
    return 0


def _write_new(path: str, lines: Sequence[bytes]) -> None:
    """Write a new file that only its owner may read, and sync it; remove it again if that fails."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as problem:
        raise StoreError(f"{path} exists; name a new file, or remove it") from problem
    try:
        with open(descriptor, "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(path)
        raise


class StoppedNode:
    """The log directories of a single node that does not run."""

    def __init__(self, directories: Sequence[str]) -> None:
        self._directories = directories
        self._files = OsFiles()
        self._homes = [path for path in directories if os.path.exists(os.path.join(path, FILE_NAME))]

    @classmethod
    @contextmanager
    def hold(cls, directories: Sequence[str]) -> Iterator[StoppedNode]:
        """Lock the directories; raises LogDirectoryError if a broker runs on one of them, or there is no such directory."""
        files = OsFiles()
        with ExitStack() as held:
            for path in dict.fromkeys(map(os.path.realpath, directories)):
                if not os.path.isdir(path):
                    raise LogDirectoryError(f"{path} is no directory; name the log directories of the broker")
                try:
                    held.callback(files.lock(os.path.join(path, LOCK_FILE)).release)
                except DirectoryLockedError as problem:
                    raise LogDirectoryError(f"{path} is in use by a broker: stop it first") from problem
            yield cls(directories)

    def check_cluster(self, cluster_id: str | None) -> None:
        """Raise LogDirectoryError if a directory belongs to another cluster."""
        for owner in read_owners(self._files, self._directories):
            if owner.cluster_id not in (None, cluster_id):
                raise LogDirectoryError(
                    f"the directories belong to the cluster {owner.cluster_id}, the metadata to {cluster_id}; "
                    "name directories of one cluster"
                )

    def read_metadata(self) -> Mapping[str, bytes] | None:
        """Return the values of the node's metadata, None without any; raises StoreError."""
        if not self._homes:
            return None
        if len(self._homes) > 1:
            raise StoreError(f"{' and '.join(self._homes)} both have a {FILE_NAME}; move the older one away")
        store = SqliteStore(self._homes[0], DirectDisk())
        try:
            return _result_of(Deferred.fromCoroutine(read_whole_store(store)))
        finally:
            _result_of(store.close())

    def change_metadata(self, change: Callable[[MetadataStore], Coroutine[Any, Any, None]]) -> None:
        """Change the node's metadata, which is begun in the first directory if there is none; raises StoreError."""
        store = SqliteStore(self._homes[0] if self._homes else self._directories[0], DirectDisk())
        try:
            _result_of(Deferred.fromCoroutine(change(store)))
        finally:
            _result_of(store.close())

    def rename_metadata(self) -> None:
        """Rename the metadata file, so that no broker starts with it by itself."""
        for home in self._homes:
            path = os.path.join(home, FILE_NAME)
            os.rename(path, f"{path}{MOVED_SUFFIX}")


def _result_of(deferred: Deferred[Result]) -> Result:
    """Return the result of a Deferred that has fired, or raise its error."""
    results: list[Result | Failure] = []
    deferred.addBoth(results.append)
    (result,) = results
    if isinstance(result, Failure):
        result.raiseException()
    assert not isinstance(result, Failure)
    return result
