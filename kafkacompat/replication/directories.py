"""The log directories of a broker, each with the thread that waits for its disk."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from kafkacompat.disk import Disk
    from kafkacompat.storage.log_directory import LogDirectory

PartitionName: TypeAlias = "tuple[str, int]"


# More wishes than that are not kept: they may be for partitions that nobody will ever make.
MAX_WISHES = 10_000


@dataclass(eq=False)
class Directory:
    """One log directory and the partitions that live in it."""

    storage: LogDirectory
    disk: Disk
    partitions: set[PartitionName] = field(default_factory=set)
    offline: bool = False

    @property
    def path(self) -> str:
        """What clients call it."""
        return os.path.abspath(self.storage.path)


class Directories:
    """All log directories: where a partition is, or where a new one goes."""

    def __init__(self, directories: Sequence[Directory], cordoned: Callable[[], Collection[str]] = tuple) -> None:
        """``cordoned`` tells the paths that get no new partitions at the moment."""
        self._all = list(directories)
        self._cordoned = cordoned
        self._home: dict[PartitionName, Directory] = {}
        self._wishes: dict[PartitionName, Directory] = {}

    def __iter__(self) -> Iterator[Directory]:
        return iter(self._all)

    def home(self, name: PartitionName) -> Directory | None:
        """The directory that a partition lives in, if there is one already."""
        return self._home.get(name)

    def is_cordoned(self, directory: Directory) -> bool:
        """Whether a directory shall get no new partitions."""
        return directory.storage.path in self._cordoned()

    def at(self, path: str) -> Directory | None:
        """The directory that clients call *path*."""
        return next((each for each in self._all if each.path == path), None)

    def wish(self, name: PartitionName, directory: Directory) -> None:
        """Somebody wants a partition that is not open yet in a directory."""
        self._wishes.pop(name, None)
        self._wishes[name] = directory
        if len(self._wishes) > MAX_WISHES:
            del self._wishes[next(iter(self._wishes))]

    def take_wish(self, name: PartitionName) -> Directory | None:
        """Where somebody wants a partition, unless that directory is offline; asked once."""
        directory = self._wishes.pop(name, None)
        return None if directory is None or directory.offline else directory

    def found(self, name: PartitionName, directory: Directory) -> None:
        """A partition lives in a directory."""
        directory.partitions.add(name)
        self._home[name] = directory

    def place(self, name: PartitionName) -> Directory:
        """Choose where a new one goes: where it was wished for, else where the fewest partitions are.

        Cordoned directories are chosen only if there are no others.

        Raises KafkaError KAFKA_STORAGE_ERROR when every directory is offline.
        """
        online = [directory for directory in self._all if not directory.offline]
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        directory = self.take_wish(name) or min(online, key=lambda each: (self.is_cordoned(each), len(each.partitions)))
        self.found(name, directory)
        return directory

    def forget(self, name: PartitionName) -> None:
        """A partition is gone."""
        directory = self._home.pop(name, None)
        if directory is not None:
            directory.partitions.discard(name)
