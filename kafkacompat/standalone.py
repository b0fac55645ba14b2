"""A broker by itself: it is its own controller, and keeps the metadata in one file of a log directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacompat.metadata.codec import decode_image
from kafkacompat.metadata.controller import Controller
from kafkacompat.metadata.sqlite_store import check_store_directory
from kafkacompat.partitions.discovery import check_new_directories, find_partitions
from kafkacompat.partitions.takeover import Takeover, find_owning_cluster
from kafkacompat.wire.primitives import format_uuid

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.disk import OwnedDisk
    from kafkacompat.host import Host
    from kafkacompat.metadata.effective import EffectiveConfig
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.metadata.local_replicas import PartitionEvents
    from kafkacompat.partitions.directories import Directories


class Standalone:
    """The metadata side of a single node. Call the methods in their order.

    ``store`` is the node's metadata store. The constructor raises StoreError if another log directory has one.
    """

    def __init__(self, host: Host, config: BrokerConfig, find_disk: Callable[[str], OwnedDisk]) -> None:
        check_store_directory(config.metadata_log_dir, config.log_dirs)
        self._host = host
        self._config = config
        self._find_disk = find_disk
        self.store = host.open_store(config.metadata_log_dir, find_disk(config.metadata_log_dir))

    async def find_cluster_id(self) -> str:
        """Return the cluster's id, a new one on empty directories; raises LogDirectoryError and StoreError."""
        files, config = self._host.files, self._config
        cluster_id = find_owning_cluster(files, config) or await self._find_cluster_of_store()
        await check_new_directories(files, config, self.store)
        return cluster_id or format_uuid(self._host.rng.randbytes(16))

    async def _find_cluster_of_store(self) -> str | None:
        """Return the cluster that the metadata belongs to, for the case that every meta.properties is lost."""
        if not self._host.files.exists(str(self.store.path)):
            return None
        return decode_image(await self.store.load()).cluster_id or None

    def build_controller(self, holder: ImageHolder, events: PartitionEvents, effective: EffectiveConfig) -> Controller:
        """Build the node's controller."""
        self._controller = Controller(self.store, holder, events, effective, self._config, self._host.rng)
        return self._controller

    async def start(self, cluster_id: str, directories: Directories) -> None:
        """Read the metadata, take over what the log directories hold, and lead every partition.

        Raises LogDirectoryError and StoreError.
        """
        takeover = Takeover(self._config, self.store, self._host.files, self._find_disk, self._host.rng)
        await takeover.set_damaged_store_aside()
        await self._controller.load(cluster_id, lambda: takeover.collect_inheritance(directories))
        await takeover.mark_taken_over()
        await find_partitions(directories, self._controller.committed.topics)
        await self._controller.start()

    async def close(self) -> None:
        """Close the store."""
        await self.store.close()
