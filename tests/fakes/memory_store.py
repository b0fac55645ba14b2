"""A metadata store in memory, which can be made to conflict and to fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from twisted.internet.defer import Deferred, maybeDeferred

from kafkacompat.metadata.store import ABSENT, OFFSETS_FOLDER, ConflictError, StoreChange, StoreEntry, StoreError


class MemoryStore:
    """Passes the same tests as `SqliteStore`.

    ``before_write`` is called before each write, for a test to change ``entries`` as another controller
    would; while ``failing`` is set nothing can be read or written; ``lose_answers`` makes writes fail after
    they were done.
    """

    def __init__(self) -> None:
        self.entries: dict[str, StoreEntry] = {}
        self.before_write: Callable[[], None] = lambda: None
        self.failing = False
        self.lose_answers = False
        self.writes: list[Sequence[StoreChange]] = []

    def load(self) -> Deferred[Mapping[str, StoreEntry]]:
        return maybeDeferred(self._load)

    def read(self, keys: Sequence[str]) -> Deferred[Mapping[str, StoreEntry]]:
        return maybeDeferred(lambda: {key: entry for key, entry in self._all().items() if key in keys})

    def keys(self, folder: str) -> Deferred[Sequence[str]]:
        return maybeDeferred(lambda: [key for key in self._all() if key.startswith(folder)])

    def compare_and_set(self, changes: Sequence[StoreChange]) -> Deferred[None]:
        return maybeDeferred(self._compare_and_set, changes)

    def close(self) -> Deferred[None]:
        return maybeDeferred(lambda: None)

    def _load(self) -> dict[str, StoreEntry]:
        return {key: entry for key, entry in self._all().items() if not key.startswith(OFFSETS_FOLDER)}

    def _all(self) -> dict[str, StoreEntry]:
        if self.failing:
            raise StoreError("the store is failing, as it was told to")
        return dict(self.entries)

    def _compare_and_set(self, changes: Sequence[StoreChange]) -> None:
        self.before_write()
        entries = self._all()
        for change in changes:
            version = entries[change.key].version if change.key in entries else ABSENT
            if version != change.expected_version:
                raise ConflictError(f"{change.key} has version {version}")
            if change.value is None:
                entries.pop(change.key, None)
            else:
                entries[change.key] = StoreEntry(change.value, version + 1)
        self.entries = entries
        self.writes.append(changes)
        if self.lose_answers:
            raise StoreError("the answer is lost, as it was told to be")
