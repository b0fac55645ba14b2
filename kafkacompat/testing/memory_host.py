"""A machine whose files are in memory and whose sockets are real: brokers on it use no thread and no process of their own."""

from __future__ import annotations

from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, fail, maybeDeferred

from kafkacompat.disk import DirectDisk
from kafkacompat.host import ReactorHost
from kafkacompat.network import Network, ReactorNetwork
from kafkacompat.server.transport import ZeroCopyConnector, make_zero_copy_port
from kafkacompat.storage.files.operating_system import raise_open_file_limit
from kafkacompat.testing.memory_files import InMemoryFiles
from kafkacompat.testing.memory_store import InMemoryStore
from kafkacompat.timers import Clock, now_ms
from kafkacompat.workers.child import import_function
from kafkacompat.workers.processes import Work, build_stopped_error
from kafkacompat.zookeeper.settings import parse_connect

if TYPE_CHECKING:
    from kafkacompat.metadata.store import StoreEntry
    from kafkacompat.storage.files.filesystem import Files
    from kafkacompat.zookeeper.client import ZooKeeper
    from kafkacompat.zookeeper.memory import MemoryZooKeeper
    from kafkacompat.zookeeper.settings import ZooKeeperSettings


class DirectWorkers:
    """`Workers` that compute at once in the caller's thread: a process would cost more than a test's few records."""

    pending = 0

    def __init__(self) -> None:
        self._is_closed = False

    def run(self, work: Work) -> Deferred[Any]:
        """See Workers.run."""
        return fail(build_stopped_error()) if self._is_closed else maybeDeferred(work, _call)

    def close(self) -> None:
        """See Workers.close."""
        self._is_closed = True


def _call(name: str, *arguments: Any) -> Any:
    return import_function(name)(*arguments)


class InMemoryMachine:
    """Files and metadata that outlive the processes of a broker; *zookeeper* is that of its cluster."""

    def __init__(self, clock: Clock, zookeeper: MemoryZooKeeper | None = None) -> None:
        self.files = InMemoryFiles(lambda: now_ms(clock))
        self.metadata: dict[str, StoreEntry] = {}
        self.zookeeper = zookeeper

    def start_process(self, reactor: Any) -> InMemoryHost:
        """Return the machine as one process sees it."""
        return InMemoryHost(reactor, self)


class InMemoryHost:
    """Implements `Host` for one process on a machine."""

    def __init__(self, reactor: Any, machine: InMemoryMachine) -> None:
        self.reactor = reactor
        self.files: Files = machine.files
        self.rng: Random = SystemRandom()
        self.network: Network = ReactorNetwork(reactor, make_zero_copy_port(), ZeroCopyConnector)
        self.boot_id = "memory"
        self._machine = machine

    def new_disk(self, name: str) -> DirectDisk:
        """See Host."""
        return DirectDisk()

    def new_workers(self, count: int, name: str, *, timeout_s: float | None = None) -> DirectWorkers:
        """See Host."""
        return DirectWorkers()

    def open_store(self, directory: str, disk: object) -> InMemoryStore:
        """See Host."""
        return InMemoryStore(directory, self._machine.metadata)

    def open_zookeeper(self, settings: ZooKeeperSettings) -> ZooKeeper:
        """See Host."""
        assert self._machine.zookeeper is not None
        return connect_to_memory(self._machine.zookeeper, self.reactor, settings)

    def raise_open_file_limit(self) -> int:
        """See Host."""
        return raise_open_file_limit()


class ClusterFolderHost(ReactorHost):
    """The real machine of a broker whose cluster has a ZooKeeper in memory."""

    def __init__(self, reactor: Any, zookeeper: MemoryZooKeeper) -> None:
        super().__init__(reactor)
        self._zookeeper = zookeeper

    def open_zookeeper(self, settings: ZooKeeperSettings) -> ZooKeeper:
        """See Host."""
        return connect_to_memory(self._zookeeper, self.reactor, settings)


def connect_to_memory(zookeeper: MemoryZooKeeper, clock: Clock, settings: ZooKeeperSettings) -> ZooKeeper:
    """Return a client of a ZooKeeper in memory."""
    return zookeeper.connect(clock, parse_connect(settings.connect).chroot, settings.session_timeout_ms / 1000)
