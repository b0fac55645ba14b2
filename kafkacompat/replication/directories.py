"""The log directories of a broker, each with the thread that waits for its disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from kafkacompat.disk import Disk
    from kafkacompat.storage.log_directory import LogDirectory

PartitionName: TypeAlias = "tuple[str, int]"


@dataclass(eq=False)
class Directory:
    """One log directory and the partitions that live in it."""

    storage: LogDirectory
    disk: Disk
    partitions: set[PartitionName] = field(default_factory=set)
    offline: bool = False


class Directories:
    """All log directories: where a partition is, or where a new one goes."""

    def __init__(self, directories: Sequence[Directory], cordoned: Callable[[], Collection[str]] = tuple) -> None:
        """``cordoned`` tells the paths that get no new partitions at the moment."""
        self._all = list(directories)
        self._cordoned = cordoned
        self._home: dict[PartitionName, Directory] = {}

    def __iter__(self) -> Iterator[Directory]:
        return iter(self._all)

    def home(self, name: PartitionName) -> Directory | None:
        """The directory that a partition lives in, if there is one already."""
        return self._home.get(name)

    def found(self, name: PartitionName, directory: Directory) -> None:
        """A partition lives in a directory."""
        directory.partitions.add(name)
        self._home[name] = directory

    def place(self, name: PartitionName) -> Directory:
        """Choose the directory with the fewest partitions for a new one, cordoned ones only if there are no others.

        Raises KafkaError KAFKA_STORAGE_ERROR when every directory is offline.
        """
        online = [directory for directory in self._all if not directory.offline]
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        cordoned = self._cordoned()
        directory = min(online, key=lambda each: (each.storage.path in cordoned, len(each.partitions)))
        self.found(name, directory)
        return directory

    def forget(self, name: PartitionName) -> None:
        """A partition is gone."""
        directory = self._home.pop(name, None)
        if directory is not None:
            directory.partitions.discard(name)
