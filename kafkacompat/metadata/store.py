"""The store of the cluster's metadata: keys with a value and a version, changed by compare-and-set.

Keys, values and versions are those of the znodes that Kafka kept in ZooKeeper; see `codec`. A new key has version 0, and each
change adds one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from twisted.internet.defer import Deferred

ABSENT = -1
"""The version of a missing key."""

OFFSETS_FOLDER = "/consumers/"
"""Folder of the offsets that clients commit by OffsetCommit v0. There may be many, so `MetadataStore.load` leaves them out."""


class StoreEntry(NamedTuple):
    """The value and version of a key."""

    value: bytes
    version: int


class StoreChange(NamedTuple):
    """One key's new value (None deletes it), valid only while the key has the expected version.

    With ``is_announced`` a store that has several readers notifies them of the change, which it makes only together with that.
    """

    key: str
    expected_version: int
    value: bytes | None
    is_announced: bool = False


class StoreError(Exception):
    """The store cannot be read or written; the message is one sentence."""


class ConflictError(Exception):
    """A key no longer has the expected version; the store made no change."""


class MetadataStore(Protocol):
    """A store of metadata. Its methods return at once and fail with StoreError."""

    def load(self) -> Deferred[Mapping[str, StoreEntry]]:
        """Fire with all entries except those under OFFSETS_FOLDER."""

    def read(self, keys: Sequence[str]) -> Deferred[Mapping[str, StoreEntry]]:
        """Fire with the entries of those keys that exist, all read at the same time."""

    def keys(self, folder: str) -> Deferred[Sequence[str]]:
        """Fire with every key that begins with *folder*, which ends in a slash."""

    def compare_and_set(self, changes: Sequence[StoreChange]) -> Deferred[None]:
        """Make all the changes or none; fires once they are durable, fails with ConflictError too."""

    def close(self) -> Deferred[None]:
        """Close the store."""


class NodeStore(MetadataStore, Protocol):
    """The store of a single node, which lies in a log directory."""

    @property
    def path(self) -> Path:
        """The file, for messages, and to see whether the store exists."""

    def set_aside_if_damaged(self) -> Deferred[str | None]:
        """Rename a damaged store; fires with its new name, or with None when it is sound or missing."""
