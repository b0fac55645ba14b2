"""The disks of a broker, and the log directories on them: opened, closed, and released."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, DeferredList

from kafkacompat.disk import do_nothing
from kafkacompat.partitions.directories import Directory
from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.segment.shared_files import SegmentCache

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.disk import OwnedDisk
    from kafkacompat.host import Host
    from kafkacompat.partitions.replica_manager import ReplicaManager

log = logging.getLogger(__name__)


class BrokerDisks:
    """A disk for each log directory, and others by their purpose.

    ``by_name`` are the disks in use, ``directories`` the open log directories.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self.by_name: dict[str, OwnedDisk] = {}
        self.directories: list[Directory] = []

    def find(self, name: str) -> OwnedDisk:
        """Return the disk of a log directory or a purpose, which is made at its first use."""
        if name not in self.by_name:
            self.by_name[name] = self._host.new_disk(name)
        return self.by_name[name]

    async def open_directories(self, config: BrokerConfig, cluster_id: str, boot_id: str | None) -> None:
        """Lock and read the log directories; raises LogDirectoryError."""
        cache = SegmentCache.for_open_files(self._host.raise_open_file_limit())
        for path in config.log_dirs:
            disk = self.find(path)
            storage = await disk.run(
                LogDirectory.open,
                self._host.files,
                path,
                node_id=config.node_id,
                cluster_id=cluster_id,
                new_directory_id=self._host.rng.randbytes(16),
                cache=cache,
                boot_id=boot_id,
            )
            self.directories.append(Directory.configured(storage, disk, self._host.reactor, config))

    async def close_directories(self, replicas: ReplicaManager) -> None:
        """Close every log directory; a failure of one does not keep the others from writing their checkpoints."""
        await replicas.prepare_to_close()
        closing: list[Deferred[Any]] = []
        for directory, logs in replicas.logs_by_directory():
            self.directories.remove(directory)
            high_watermarks = replicas.high_watermarks(logs)
            closed = directory.disk.run(directory.storage.close, logs, high_watermarks)
            closing.append(
                closed.addErrback(lambda failure: log.error("Cannot close a log directory: %s", failure.value))
            )
        await DeferredList(closing)

    async def abandon_directories(self, replicas: ReplicaManager) -> None:
        """Close the files of all logs, and write nothing: the next start recovers."""
        replicas.abandon()
        for directory, logs in replicas.logs_by_directory():
            await directory.disk.run(do_nothing)
            for opened in logs:
                opened.release()

    async def release(self) -> None:
        """Unlock the log directories, and end the disks."""
        for directory in self.directories:
            await directory.disk.run(directory.storage.release)
        self.directories.clear()
        for disk in self.by_name.values():
            disk.close()
        self.by_name.clear()
