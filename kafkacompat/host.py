"""The operating system as a broker sees it: one object, so that tests run whole brokers without threads, sockets or waiting."""

from __future__ import annotations

from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, Protocol

from kafkacompat.disk import DiskThread, OwnedDisk
from kafkacompat.metadata.sqlite_store import SqliteStore
from kafkacompat.network import Network, ReactorNetwork
from kafkacompat.server.transport import ZeroCopyConnector, make_zero_copy_port
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.files.operating_system import OsFiles, raise_open_file_limit, read_boot_id
from kafkacompat.workers.processes import ProcessWorkers, Workers

if TYPE_CHECKING:
    from kafkacompat.metadata.store import NodeStore
    from kafkacompat.zookeeper.client import ZooKeeper
    from kafkacompat.zookeeper.settings import ZooKeeperSettings


class Host(Protocol):
    """What a broker needs from its machine.

    ``reactor`` is a Twisted reactor, or a clock that also listens; ``rng`` is the source of every id.
    """

    @property
    def reactor(self) -> Any: ...
    @property
    def files(self) -> Files: ...
    @property
    def rng(self) -> Random: ...
    @property
    def network(self) -> Network: ...
    @property
    def boot_id(self) -> str:
        """The id that the kernel has had since its boot; "" if it has none. Processes with the same one run on one kernel."""

    def new_disk(self, name: str) -> OwnedDisk:
        """Create the thread that waits for the disk of a path."""

    def new_workers(self, count: int, name: str, *, timeout_s: float | None = None) -> Workers:
        """Create up to *count* worker processes; see `ProcessWorkers`."""

    def open_store(self, directory: str, disk: OwnedDisk) -> NodeStore:
        """Return the metadata store of a single node, in *directory*; it is opened at its first use."""

    def open_zookeeper(self, settings: ZooKeeperSettings) -> ZooKeeper:
        """Return a client of a cluster's ZooKeeper, not started yet."""

    def raise_open_file_limit(self) -> int:
        """Allow as many open files as the system permits, and return their number."""


class ReactorHost:
    """The real machine, through a Twisted reactor."""

    def __init__(self, reactor: Any) -> None:
        self.reactor = reactor
        self.files: Files = OsFiles()
        self.rng: Random = SystemRandom()
        self.network: Network = ReactorNetwork(reactor, make_zero_copy_port(), ZeroCopyConnector)
        self.boot_id = read_boot_id()

    def new_disk(self, name: str) -> OwnedDisk:
        """See Host."""
        return DiskThread(self.reactor, name)

    def new_workers(self, count: int, name: str, *, timeout_s: float | None = None) -> Workers:
        """See Host."""
        return ProcessWorkers(self.reactor, count, name, timeout_s=timeout_s)

    def open_store(self, directory: str, disk: OwnedDisk) -> SqliteStore:
        """See Host."""
        return SqliteStore(directory, disk)

    def open_zookeeper(self, settings: ZooKeeperSettings) -> ZooKeeper:
        """See Host."""
        # A single node does not pay for kazoo.
        from kafkacompat.zookeeper.kazoo_client import KazooZooKeeper

        return KazooZooKeeper(self.reactor, settings)

    def raise_open_file_limit(self) -> int:
        """See Host."""
        return raise_open_file_limit()
