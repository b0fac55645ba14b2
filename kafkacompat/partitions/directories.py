"""The log directories of a broker, each with the thread that waits for its disk."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar

from kafkacompat.partitions.free_space import FreeSpace
from kafkacompat.partitions.group_commit import GroupCommit
from kafkacompat.storage.files.filesystem import SyncError
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from kafkacompat.config import BrokerConfig
    from kafkacompat.disk import Disk
    from kafkacompat.storage.directory.log_directory import LogDirectory
    from kafkacompat.timers import Clock

PartitionName: TypeAlias = "tuple[str, int]"
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Item = TypeVar("Item")

log = logging.getLogger(__name__)

REMOVED_TOGETHER = 100
"""So many folders are removed before others have a turn on their disk."""

# More wishes than that are not kept: they may be for partitions that nobody will ever make.
MAX_WISHES = 10_000


def _ignore(_problem: BaseException) -> None:
    """Nobody is to be told yet."""


class _Attended:
    """The disk of a log directory; ``sync_failed`` is told when a sync fails in anything that it runs."""

    def __init__(self, disk: Disk, sync_failed: Callable[[BaseException], None]) -> None:
        self._disk = disk
        self._sync_failed = sync_failed

    def run(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Deferred[Result]:
        """See Disk.run."""
        return self._disk.run(function, *args, **kwargs).addErrback(self._failed)

    def run_each(self, function: Callable[[Item], object], items: Sequence[Item]) -> Deferred[None]:
        """See Disk.run_each."""
        return self._disk.run_each(function, items).addErrback(self._failed)

    def _failed(self, failure: Failure) -> Failure:
        problem = failure.value
        assert problem is not None
        if isinstance(problem, SyncError) or isinstance(problem.__cause__, SyncError):
            self._sync_failed(problem)
        return failure


class Directory:
    """One log directory and the partitions that live in it.

    With ``syncs_always`` what is appended counts once it is on the disk; ``reserve_bytes`` is what clients leave free.
    ``on_failure`` is told when the directory can be used no more.
    """

    def __init__(
        self, storage: LogDirectory, disk: Disk, clock: Clock, *, syncs_always: bool = False, reserve_bytes: int = 0
    ) -> None:
        self.storage = storage
        self.disk: Disk = _Attended(disk, self.failed)
        self.commit = GroupCommit(self.disk, clock, self.failed, syncs_always)
        self.space = FreeSpace(storage.path, lambda: self.disk.run(storage.disk_usage), reserve_bytes)
        self.partitions: set[PartitionName] = set()
        self.offline = False
        self.closing = False
        """Whether it is about to be given up: others may have it next."""
        self._clock = clock
        self._removals: set[int] = set()
        self.on_failure: Callable[[BaseException], None] = _ignore

    @classmethod
    def configured(cls, storage: LogDirectory, disk: Disk, clock: Clock, config: BrokerConfig) -> Directory:
        """One as the properties say."""
        return cls(
            storage,
            disk,
            clock,
            syncs_always=config.string("kafkacompat.acks.after") == "fsync",
            reserve_bytes=config.int("kafkacompat.disk.reserve.bytes"),
        )

    def failed(self, problem: BaseException) -> None:
        """Something in it failed for good."""
        self.on_failure(problem)

    def remove_deleted_later(self, delay_ms: int) -> None:
        """Take the files of deleted partitions off the disk when their time has come, or at the next start.

        One look is for all folders that are due in one second: each look is at the whole directory.
        """
        due_s = int(self._clock.seconds() + delay_ms / 1000)
        if due_s not in self._removals:
            self._removals.add(due_s)
            self._clock.callLater(delay_ms / 1000, self._remove_due, due_s)

    def _remove_due(self, due_s: int) -> None:
        self._removals.discard(due_s)
        self._remove_deleted()

    def _remove_deleted(self) -> None:
        if not (self.offline or self.closing):
            removing = self.disk.run(self.storage.remove_deleted, REMOVED_TOGETHER)
            # Whoever waits for a new segment must not wait for thousands of folders.
            removing.addCallback(lambda more: self._remove_deleted() if more else None)
            removing.addErrback(lambda failure: log.error("deleting files failed: %s", failure.getErrorMessage()))

    @property
    def path(self) -> str:
        """What clients call it."""
        return os.path.abspath(self.storage.path)


class Directories:
    """All log directories: where a partition is, or where a new one goes."""

    def __init__(self, directories: Sequence[Directory], cordoned: Callable[[], Collection[str]] = tuple) -> None:
        """``cordoned`` tells the paths that get no new partitions at the moment."""
        self._all = list(directories)
        for directory in self._all:
            directory.space.share_with([each.space for each in self._all if _is_neighbour(each, directory)])
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

        Full and cordoned directories are chosen only if there are no others.

        Raises KafkaError KAFKA_STORAGE_ERROR when every directory is offline.
        """
        online = [directory for directory in self._all if not directory.offline]
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        directory = self.take_wish(name) or min(online, key=self._preference)
        self.found(name, directory)
        return directory

    def _preference(self, directory: Directory) -> tuple[bool, bool, int]:
        return self.is_cordoned(directory), directory.space.is_full, len(directory.partitions)

    def check_room(self) -> None:
        """Raise KafkaError KAFKA_STORAGE_ERROR when no directory has room for new partitions."""
        online = [directory for directory in self._all if not directory.offline]
        if online and all(directory.space.is_full for directory in online):
            raise online[0].space.refusal()

    def forget(self, name: PartitionName) -> None:
        """A partition is gone."""
        directory = self._home.pop(name, None)
        if directory is not None:
            directory.partitions.discard(name)


def _is_neighbour(one: Directory, other: Directory) -> bool:
    return one is not other and one.storage.device == other.storage.device
