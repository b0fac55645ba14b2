"""The metadata of a broker in memory: a dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from twisted.internet.defer import Deferred, maybeDeferred, succeed

from kafkacompat.metadata.sqlite_store import FILE_NAME
from kafkacompat.metadata.store import ABSENT, OFFSETS_FOLDER, ConflictError, StoreChange, StoreEntry


class InMemoryStore:
    """A `NodeStore`. *entries* are its contents, which outlive it, so that a broker can start on them again."""

    def __init__(self, directory: str, entries: dict[str, StoreEntry]) -> None:
        self.path = Path(directory) / FILE_NAME
        self._entries = entries

    def load(self) -> Deferred[Mapping[str, StoreEntry]]:
        """See MetadataStore.load."""
        return succeed({key: entry for key, entry in self._entries.items() if not key.startswith(OFFSETS_FOLDER)})

    def read(self, keys: Sequence[str]) -> Deferred[Mapping[str, StoreEntry]]:
        """See MetadataStore.read."""
        return succeed({key: self._entries[key] for key in keys if key in self._entries})

    def keys(self, folder: str) -> Deferred[Sequence[str]]:
        """See MetadataStore.keys."""
        return succeed([key for key in self._entries if key.startswith(folder)])

    def compare_and_set(self, changes: Sequence[StoreChange]) -> Deferred[None]:
        """See MetadataStore.compare_and_set."""
        return maybeDeferred(self._compare_and_set, changes)

    def _compare_and_set(self, changes: Sequence[StoreChange]) -> None:
        changed: dict[str, StoreEntry | None] = {}
        for change in changes:
            entry = changed.get(change.key, self._entries.get(change.key))
            version = ABSENT if entry is None else entry.version
            if version != change.expected_version:
                raise ConflictError(f"{change.key} has version {version}, not {change.expected_version}")
            changed[change.key] = None if change.value is None else StoreEntry(change.value, version + 1)
        for key, entry in changed.items():
            if entry is None:
                self._entries.pop(key, None)
            else:
                self._entries[key] = entry

    def close(self) -> Deferred[None]:
        """See MetadataStore.close."""
        return succeed(None)

    def set_aside_if_damaged(self) -> Deferred[str | None]:
        """See NodeStore.set_aside_if_damaged; memory is never damaged."""
        return succeed(None)
