"""A file system in memory whose process or power ends at a chosen operation."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.fakes.memory_files import Failure, MemoryFiles

Names = dict[str, Any]


class PowerFailureError(BaseException):
    """The end of the process; nothing that handles errors may handle it."""


class CrashingFiles(MemoryFiles):
    """Ends at the operation number `end_at` of those that change something; `done` counts them.

    What became of names since their folder was synced last is remembered, for a disk that has written some of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.end_at = -1
        self.done = 0
        self._changes: list[Callable[[Names], None]] = []

    def _count(self) -> None:
        if self.done == self.end_at:
            raise PowerFailureError
        self.done += 1

    def fail(self, operation: str, size_bytes: int = 0) -> Failure | None:
        """See MemoryFiles.fail; it is asked before each of these."""
        if operation in ("append", "sync", "truncate", "sync_directory"):
            self._count()
        return super().fail(operation, size_bytes)

    def open(self, path: str, *, create: bool = False) -> Any:
        """See Files.open."""
        if create and not self.exists(path):
            self._count()
            opened = super().open(path, create=True)
            node = self._find(path)
            self._changes.append(lambda names: names.update({_name(path): node}))
            return opened
        return super().open(path)

    def rename(self, old: str, new: str) -> None:
        """See Files.rename."""
        self._count()
        node = self._find(old)
        super().rename(old, new)

        def change(names: Names) -> None:
            names.pop(_name(old), None)
            names[_name(new)] = node

        self._changes.append(change)

    def remove(self, path: str) -> None:
        """See Files.remove."""
        self._count()
        super().remove(path)
        self._changes.append(lambda names: names.pop(_name(path), None) and None)

    def sync_directory(self, path: str) -> None:
        """See Files.sync_directory."""
        super().sync_directory(path)
        self._changes.clear()

    def end_with_power(self, directory: str, rng: Random | None) -> None:
        """Lose what was not synced; of the changes of names in a folder, some are on the disk (none without `rng`)."""
        folder = self._folder(directory)
        for change in self._changes:
            if rng is not None and rng.random() < 0.5:
                change(folder.on_disk)
        self._changes.clear()
        self.end_at = -1
        self.crash()


def _name(path: str) -> str:
    return path.rpartition("/")[2]
