"""The metadata store of a single node: one SQLite file, durable at every commit.

Every statement runs on the given disk thread. The process locks the file exclusively: the write-ahead log then needs one sync
for each commit and no shared memory.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from twisted.internet.defer import Deferred

from kafkacompat.disk import Disk
from kafkacompat.metadata.old_keys import rename_old_keys
from kafkacompat.metadata.store import ABSENT, OFFSETS_FOLDER, ConflictError, StoreChange, StoreEntry, StoreError
from kafkacompat.storage.files.os_errors import describe_error

FILE_NAME = "kafkacompat-metadata.sqlite"
FORMAT_VERSION = 1

_SETTINGS = ("PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL")
_TABLE = "CREATE TABLE IF NOT EXISTS metadata (key TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL)"
_LOAD = "SELECT key, value, version FROM metadata WHERE NOT (key >= ? AND key < ?)"
_KEYS = "SELECT key FROM metadata WHERE key >= ? AND key < ?"
_GET = "SELECT value, version FROM metadata WHERE key = ?"
_PUT = "INSERT INTO metadata (key, version, value) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET version = \
excluded.version, value = excluded.value"


def check_store_directory(directory: str, log_dirs: Iterable[str]) -> None:
    """Raise StoreError when another one of *log_dirs* has metadata.

    The order of log.dirs may have changed: the broker would begin an empty cluster in *directory*.
    """
    for other in log_dirs:
        if os.path.exists(os.path.join(other, FILE_NAME)) and os.path.realpath(other) != os.path.realpath(directory):
            advice = f"set metadata.log.dir={other}, or move every file with that name out of {other}"
            raise StoreError(f"{other} has a {FILE_NAME}, but {directory} is to hold the metadata: {advice}")


class SqliteStore:
    """A `MetadataStore` in *directory*; the first use creates both."""

    def __init__(self, directory: str, disk: Disk) -> None:
        self.path = Path(directory) / FILE_NAME
        self._disk = disk
        self._connection: sqlite3.Connection | None = None

    def load(self) -> Deferred[Mapping[str, StoreEntry]]:
        """See MetadataStore.load."""
        return self._disk.run(self._load)

    def read(self, keys: Sequence[str]) -> Deferred[Mapping[str, StoreEntry]]:
        """See MetadataStore.read."""
        return self._disk.run(self._read, keys)

    def keys(self, folder: str) -> Deferred[Sequence[str]]:
        """See MetadataStore.keys."""
        return self._disk.run(self._keys, folder)

    def compare_and_set(self, changes: Sequence[StoreChange]) -> Deferred[None]:
        """See MetadataStore.compare_and_set."""
        return self._disk.run(self._compare_and_set, changes)

    def close(self) -> Deferred[None]:
        """See MetadataStore.close."""
        return self._disk.run(self._close)

    def set_aside_if_damaged(self) -> Deferred[str | None]:
        """Rename a damaged database; fires with its new name, or with None when it is sound or missing."""
        return self._disk.run(self._set_aside_if_damaged)

    # The methods below run on the disk thread.

    def _load(self) -> dict[str, StoreEntry]:
        with self._report_errors() as connection:
            rows = connection.execute(_LOAD, _key_range(OFFSETS_FOLDER))
            return {key: StoreEntry(value, version) for key, value, version in rows}

    def _read(self, keys: Sequence[str]) -> dict[str, StoreEntry]:
        with self._report_errors() as connection:
            rows = {key: connection.execute(_GET, (key,)).fetchone() for key in keys}
            return {key: StoreEntry(*row) for key, row in rows.items() if row}

    def _keys(self, folder: str) -> list[str]:
        with self._report_errors() as connection:
            return [key for (key,) in connection.execute(_KEYS, _key_range(folder))]

    def _compare_and_set(self, changes: Sequence[StoreChange]) -> None:
        with self._report_errors() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                for change in changes:
                    _apply_change(connection, change)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _set_aside_if_damaged(self) -> str | None:
        if not self.path.exists() or self._is_sound():
            return None
        self._close()
        aside = next(name for name in map(self._name_damaged, itertools.count(1)) if not name.exists())
        # The write-ahead log belongs to this database and to no other.
        for suffix in ("-wal", "-shm", ""):
            if (file := Path(f"{self.path}{suffix}")).exists():
                file.rename(f"{aside}{suffix}")
        return str(aside)

    def _name_damaged(self, number: int) -> Path:
        return self.path.with_name(f"{FILE_NAME}.damaged-{number}")

    def _is_sound(self) -> bool:
        try:
            with self._report_errors() as connection:
                (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except StoreError as problem:
            if not _is_damage(problem.__cause__):
                raise
            return False
        return bool(verdict == "ok")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _report_errors(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, opened at the first use; turn errors of SQLite and of the system into StoreError."""
        try:
            if self._connection is None:
                self._connection = self._open()
            yield self._connection
        except (sqlite3.Error, OSError) as problem:
            ways = "; move it away to take over what the log directories hold" if _is_damage(problem) else ""
            raise StoreError(
                f"the metadata in {self.path} cannot be used: {describe_error(problem)}{ways}"
            ) from problem

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The file has credentials. SQLite creates the files beside it with the same rights.
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=0)
        try:
            for setting in _SETTINGS:
                connection.execute(setting)
            _check_format(connection, self.path)
            connection.execute(_TABLE)
            rename_old_keys(connection)
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        except BaseException:
            connection.close()
            raise
        return connection


def _is_damage(problem: BaseException | None) -> bool:
    """Return whether the file is damaged; SQLite raises subclasses for other causes, such as a lock or a full disk."""
    return type(problem) is sqlite3.DatabaseError


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > FORMAT_VERSION:
        raise StoreError(f"{path} has format {version}, newer than {FORMAT_VERSION}: start it with a newer kafkacompat")


def _key_range(folder: str) -> tuple[str, str]:
    """Return the first key of a folder and the first key after it."""
    return folder, folder[:-1] + chr(ord("/") + 1)


def _apply_change(connection: sqlite3.Connection, change: StoreChange) -> None:
    row = connection.execute("SELECT version FROM metadata WHERE key = ?", (change.key,)).fetchone()
    version = row[0] if row else ABSENT
    if version != change.expected_version:
        raise ConflictError(f"{change.key} has version {version}, not {change.expected_version}")
    if change.value is None:
        connection.execute("DELETE FROM metadata WHERE key = ?", (change.key,))
    else:
        connection.execute(_PUT, (change.key, version + 1, change.value))
