"""Where the cluster's metadata is kept: keys with a value and a version, changed by compare-and-set.

Keys and values are those of the znodes that Kafka kept in ZooKeeper (`codec` knows them), and so are the
versions: 0 when a key is made, one more with every change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

ABSENT = -1
"""The version of a key that is not there."""

OFFSETS_FOLDER = "/consumers/"
"""What clients commit by the first OffsetCommit lies under it. It may be much, so `MetadataStore.load` leaves it out."""


class Entry(NamedTuple):
    """What a key holds."""

    value: bytes
    version: int


class Change(NamedTuple):
    """One key's new value (None deletes it), valid only while the key has the expected version."""

    key: str
    expected_version: int
    value: bytes | None


class StoreError(Exception):
    """The store cannot be read or written; the message is one sentence."""


class ConflictError(Exception):
    """A key does not have the expected version any more; nothing was changed."""


class MetadataStore(Protocol):
    """A store of metadata. Its methods return at once and fail with StoreError."""

    def load(self) -> Deferred[Mapping[str, Entry]]:
        """Fire with everything there is but for what lies under OFFSETS_FOLDER."""

    def read(self, keys: Sequence[str]) -> Deferred[Mapping[str, Entry]]:
        """Fire with the entries of those keys that are there, as they are at one time."""

    def keys(self, folder: str) -> Deferred[Sequence[str]]:
        """Fire with every key that begins with *folder*, which ends in a slash."""

    def compare_and_set(self, changes: Sequence[Change]) -> Deferred[None]:
        """Make all the changes or none; fires once they are durable, fails with ConflictError too."""

    def close(self) -> Deferred[None]:
        """Let go of the store."""
