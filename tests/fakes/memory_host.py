"""A machine in memory: brokers on it use no thread, socket or process, and time is a clock that tests advance."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from twisted.internet.defer import Deferred, fail, maybeDeferred

from kafkacompat.disk import OwnedDisk
from kafkacompat.metadata.sqlite_store import SqliteStore
from kafkacompat.network import Network
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.timers import Clock
from kafkacompat.workers.child import import_function
from kafkacompat.workers.processes import Workers, build_stopped_error
from kafkacompat.zookeeper.client import ZooKeeper
from kafkacompat.zookeeper.memory import MemoryZooKeeper
from kafkacompat.zookeeper.settings import ZooKeeperSettings, parse_connect
from tests.fakes.disk import ImmediateDisk
from tests.fakes.memory_files import MemoryFiles

OPEN_FILES = 1024


class ClosableDisk(ImmediateDisk):
    """Runs everything at once."""

    pending = 0

    def close(self) -> None:
        """Nothing is open."""


class ImmediateWorkers:
    """Computes in the caller's thread."""

    pending = 0

    def __init__(self) -> None:
        self._closed = False

    def run(self, work: Callable[..., Any]) -> Deferred[Any]:
        """See Workers.run."""
        return fail(build_stopped_error()) if self._closed else maybeDeferred(work, _call)

    def close(self) -> None:
        """See Workers.close."""
        self._closed = True


def _call(name: str, *arguments: Any) -> Any:
    return import_function(name)(*arguments)


class MemoryHost:
    """Implements `Host`. The metadata store of a single node is the only thing that needs real files."""

    def __init__(
        self,
        clock: Clock,
        network: Network,
        *,
        files: Files | None = None,
        rng: Random | None = None,
        zookeeper: MemoryZooKeeper | None = None,
        boot_id: str = "boot 1",
    ) -> None:
        self.reactor: Any = clock
        self.boot_id = boot_id
        self.network = network
        self.files: Files = files or MemoryFiles()
        self.rng = rng or Random(1)
        self._zookeeper = zookeeper

    def new_disk(self, name: str) -> OwnedDisk:
        """See Host."""
        return ClosableDisk()

    def new_workers(self, count: int, name: str, *, timeout_s: float | None = None) -> Workers:
        """See Host."""
        return ImmediateWorkers()

    def open_store(self, directory: str, disk: OwnedDisk) -> SqliteStore:
        """See Host."""
        return SqliteStore(directory, disk)

    def open_zookeeper(self, settings: ZooKeeperSettings) -> ZooKeeper:
        """See Host."""
        assert self._zookeeper is not None
        chroot = parse_connect(settings.connect).chroot
        return self._zookeeper.connect(self.reactor, chroot, settings.session_timeout_ms / 1000)

    def raise_open_file_limit(self) -> int:
        """See Host."""
        return OPEN_FILES
