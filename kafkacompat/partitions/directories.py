"""The log directories of a broker, each with the thread that waits for its disk."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar

from twisted.internet.defer import succeed

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
    from kafkacompat.storage.log.log import Log, OffsetPosition
    from kafkacompat.timers import Clock

PartitionName: TypeAlias = "tuple[str, int]"
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Item = TypeVar("Item")

log = logging.getLogger(__name__)

REMOVED_TOGETHER = 100
"""Folders that are removed in one operation of the disk thread: other operations wait for it."""

MAX_WISHES = 10_000
"""Placements that are remembered for partitions that do not exist; the oldest is dropped, since some never will."""


def _ignore_failure(_problem: BaseException) -> None:
    """Stand in for `Directory.on_failure` until it is set."""


class _SyncWatchingDisk:
    """The disk of a log directory; calls ``sync_failed`` when a sync fails in an operation that it runs."""

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
    """One log directory: its files, its disk thread, its group commit, its free space, and the partitions in it.

    With ``syncs_always`` an append counts only once it is on the disk. ``reserve_bytes`` is the space that clients
    leave free. ``on_failure`` is called when the directory can no longer be used.
    """

    def __init__(
        self, storage: LogDirectory, disk: Disk, clock: Clock, *, syncs_always: bool = False, reserve_bytes: int = 0
    ) -> None:
        self.storage = storage
        self.disk: Disk = _SyncWatchingDisk(disk, self.report_failure)
        self.commit = GroupCommit(self.disk, clock, self.report_failure, syncs_always)
        self.space = FreeSpace(storage.path, lambda: self.disk.run(storage.disk_usage), reserve_bytes)
        self.partitions: set[PartitionName] = set()
        self.offline = False
        self.closing = False
        """Whether the broker closes its logs and is about to unlock it: another process may use it next."""
        self._clock = clock
        self._removals: set[int] = set()
        self.on_failure: Callable[[BaseException], None] = _ignore_failure

    @classmethod
    def configured(cls, storage: LogDirectory, disk: Disk, clock: Clock, config: BrokerConfig) -> Directory:
        """Create a directory as the broker's properties say."""
        return cls(
            storage,
            disk,
            clock,
            syncs_always=config.string("kafkacompat.acks.after") == "fsync",
            reserve_bytes=config.int("kafkacompat.disk.reserve.bytes"),
        )

    def report_failure(self, problem: BaseException) -> None:
        """Report a failure after which the directory can no longer be used, unless the broker closes its logs."""
        if not self.closing:
            self.on_failure(problem)

    def sync_recovered(self, opened: Log) -> Log | Deferred[Log]:
        """Sync the records that the last process appended and did not sync, where appends count only once they are synced."""
        unsynced = opened.log_end_offset - opened.recovery_point
        if not unsynced or not (self.commit.always or unsynced >= opened.config.flush_messages):
            return opened

        def not_synced(failure: Failure) -> Failure:
            assert failure.value is not None
            self.report_failure(failure.value)
            return failure

        return self.disk.run(opened.maintenance.flush_recovered).addCallbacks(lambda _: opened, not_synced)

    def find_high_watermark(self, opened: Log, is_replicated: bool) -> Deferred[tuple[Log, OffsetPosition | None]]:
        """Find the high watermark of a replicated log in the checkpoint; None for a log without other replicas."""
        if not is_replicated:
            return succeed((opened, None))
        finding = self.disk.run(self.storage.find_high_watermark, opened)
        return finding.addCallback(lambda position: (opened, position))

    def save_truncation(self, opened: Log, high_watermark: int) -> None:
        """Write the checkpoints of a log that was truncated. [disk]"""
        self.storage.save_truncation(opened, high_watermark)

    def remove_deleted_later(self, delay_ms: int) -> None:
        """Remove the files of deleted partitions after *delay_ms*, or at the next start.

        One removal serves all folders that are due in the same second: each lists the whole directory.
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
            # An append that needs a new segment must not wait for thousands of folders.
            removing.addCallback(lambda more: self._remove_deleted() if more else None)
            removing.addErrback(lambda failure: log.error("deleting files failed: %s", failure.value))

    @property
    def path(self) -> str:
        """The absolute path, by which clients name the directory."""
        return os.path.abspath(self.storage.path)


class Directories:
    """All log directories of a broker: which one holds a partition, and which one gets a new partition.

    ``cordoned`` returns the paths that get no new partitions at the moment.
    """

    def __init__(self, directories: Sequence[Directory], cordoned: Callable[[], Collection[str]] = tuple) -> None:
        self._all = list(directories)
        for directory in self._all:
            directory.space.share_with([other.space for other in self._all if _shares_device(other, directory)])
        self._cordoned = cordoned
        self._home: dict[PartitionName, Directory] = {}
        self._wishes: dict[PartitionName, Directory] = {}

    def __iter__(self) -> Iterator[Directory]:
        return iter(self._all)

    def find_home(self, name: PartitionName) -> Directory | None:
        """Return the directory that holds a partition; None for a partition without a folder."""
        return self._home.get(name)

    def is_cordoned(self, directory: Directory) -> bool:
        """Return whether a directory gets no new partitions at the moment."""
        return directory.storage.path in self._cordoned()

    def find_by_path(self, path: str) -> Directory | None:
        """Return the directory with an absolute path; None if there is none."""
        return next((directory for directory in self._all if directory.path == path), None)

    def note_wish(self, name: PartitionName, directory: Directory) -> None:
        """Remember the directory that a client wants for a partition that is not open yet."""
        self._wishes.pop(name, None)
        self._wishes[name] = directory
        if len(self._wishes) > MAX_WISHES:
            del self._wishes[next(iter(self._wishes))]

    def take_wish(self, name: PartitionName) -> Directory | None:
        """Forget the directory that a client wants for a partition, and return it unless it is offline."""
        directory = self._wishes.pop(name, None)
        return None if directory is None or directory.offline else directory

    def note_partition(self, name: PartitionName, directory: Directory) -> None:
        """Note that a directory holds a partition."""
        directory.partitions.add(name)
        self._home[name] = directory

    def choose_directory(self, name: PartitionName) -> Directory:
        """Choose the directory of a new partition: the one a client wants, else the one with the fewest partitions.

        Full and cordoned directories are chosen only if there are no others.

        Raises KafkaError KAFKA_STORAGE_ERROR when every directory is offline.
        """
        online = [directory for directory in self._all if not directory.offline]
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        directory = self.take_wish(name) or min(online, key=self._preference)
        self.note_partition(name, directory)
        return directory

    def _preference(self, directory: Directory) -> tuple[bool, bool, int]:
        return self.is_cordoned(directory), directory.space.is_full, len(directory.partitions)

    def check_room(self) -> None:
        """Raise KafkaError KAFKA_STORAGE_ERROR when no directory has room for new partitions."""
        online = [directory for directory in self._all if not directory.offline]
        if online and all(directory.space.is_full for directory in online):
            raise online[0].space.build_full_error()

    def forget(self, name: PartitionName) -> None:
        """Note that no directory holds a partition any more."""
        directory = self._home.pop(name, None)
        if directory is not None:
            directory.partitions.discard(name)


def _shares_device(directory: Directory, other: Directory) -> bool:
    return directory is not other and directory.storage.device == other.storage.device
