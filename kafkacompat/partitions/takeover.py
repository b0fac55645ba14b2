"""Taking over log directories that hold topics while the metadata store is new: Kafka's, or ours without its store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from kafkacompat.metadata.inheritance import Inheritance, InheritedPartition
from kafkacompat.metadata.kraft import KraftCluster
from kafkacompat.metadata.store import StoreError
from kafkacompat.storage.directory import takeover_mark
from kafkacompat.storage.directory.cluster_metadata import CLUSTER_METADATA_FOLDER, read_cluster_metadata
from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.directory.meta_properties import LogDirectoryError, find_cluster_id, read_owners
from kafkacompat.storage.directory.partition_survey import survey_partition
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.wire.primitives import ZERO_UUID, MalformedError

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.disk import Disk
    from kafkacompat.metadata.store import NodeStore
    from kafkacompat.partitions.directories import Directories

log = logging.getLogger(__name__)


class Takeover:
    """Collects what a new metadata store begins with, and checks that Kafka has not run on the directories since."""

    def __init__(
        self, config: BrokerConfig, store: NodeStore, files: Files, disk_of: Callable[[str], Disk], rng: Random
    ) -> None:
        self._config = config
        self._store = store
        self._files = files
        self._disk_of = disk_of
        self._rng = rng
        self._inheritance: Inheritance | None = None

    async def set_damaged_store_aside(self) -> None:
        """Rename a store that cannot be read, so that the broker begins with a new one; raises StoreError."""
        if name := await self._store.set_aside_if_damaged():
            log.error("%s is damaged: it is now %s, and a new one is begun", self._store.path, name)

    async def collect_inheritance(self, directories: Directories) -> Inheritance:
        """Return what a new store begins with; raises LogDirectoryError."""
        partitions: list[InheritedPartition] = []
        try:
            for directory in directories:
                partitions += await directory.disk.run(_survey_partitions, self._files, directory.storage)
            kraft = await self._read_cluster_metadata()
        except OSError as problem:
            raise LogDirectoryError(
                f"the partitions in log.dirs cannot be read ({describe_error(problem)}); repair that"
            ) from problem
        _check_same_cluster(partitions, kraft)
        self._inheritance = Inheritance(self._config, partitions, kraft, self._rng)
        if partitions:
            text = "%s is new: topics, with %d folders of partitions, are taken over from log.dirs; offsets committed \
by OffsetCommit 0, in ZooKeeper or in a store that was lost, are not"
            log.warning(text, self._store.path, len(partitions))
        return self._inheritance

    async def _read_cluster_metadata(self) -> KraftCluster | None:
        """Read what Kafka's controllers wrote, unless they wrote it before this broker last took over."""
        new = []
        for path in await self._paths_with_cluster_metadata():
            if await self._disk_of(path).run(takeover_mark.may_be_older_metadata, self._files, path):
                log.warning(
                    "%s in %s is older than the metadata that was lost and is not used", CLUSTER_METADATA_FOLDER, path
                )
            else:
                new.append(path)
        if len(new) > 1:
            advice = "move all away but the one that Kafka used last"
            raise LogDirectoryError(f"{' and '.join(new)} each have a {CLUSTER_METADATA_FOLDER}; {advice}")
        return await self._disk_of(new[0]).run(_replay_cluster_metadata, self._files, new[0]) if new else None

    async def _paths_with_cluster_metadata(self) -> Sequence[str]:
        paths = dict.fromkeys((self._config.metadata_log_dir, *self._config.log_dirs))
        return [
            path
            for path in paths
            if await self._disk_of(path).run(takeover_mark.has_cluster_metadata, self._files, path)
        ]

    async def mark_taken_over(self) -> None:
        """Mark the directories as taken over.

        Raises StoreError when Kafka has run on them since: its changes are not in the store.
        """
        for warning in self._inheritance.warnings if self._inheritance else ():
            log.warning("%s", warning)
        for path in await self._paths_with_cluster_metadata():
            disk = self._disk_of(path)
            if await disk.run(takeover_mark.is_metadata_unchanged, self._files, path):
                continue
            if self._inheritance is None and await disk.run(takeover_mark.is_taken_over, self._files, path):
                advice = f"move {self._store.path} away to take over what Kafka left, or remove \
{takeover_mark.FILE_NAME} there to go on as if Kafka had not run"
                raise StoreError(f"Apache Kafka has run on {path} since this broker did: {advice}")
            await disk.run(takeover_mark.write_takeover_mark, self._files, path)


def find_owning_cluster(files: Files, config: BrokerConfig) -> str | None:
    """Return the id of the cluster that all directories belong to, before any is locked; None for new directories.

    Raises LogDirectoryError when they do not agree; nothing has been written then.
    """
    return find_cluster_id(files, (*config.log_dirs, config.metadata_log_dir), config.node_id)


def belonged_to_kafka(files: Files, config: BrokerConfig) -> bool:
    """Return whether the log directories were Kafka's, so that Kafka may serve from them again."""
    if any(owner.version == 0 for owner in read_owners(files, config.log_dirs)):
        return True
    return any(takeover_mark.has_cluster_metadata(files, path) for path in (config.metadata_log_dir, *config.log_dirs))


def _survey_partitions(files: Files, storage: LogDirectory) -> list[InheritedPartition]:
    """Survey the partitions that have a log in a directory."""
    partitions = []
    for stored in storage.list_partitions():
        folder = storage.folder(stored.topic, stored.partition)
        if surveyed := survey_partition(files, folder, clean_shutdown=storage.clean_shutdown):
            partitions.append(InheritedPartition(*stored, *surveyed))
    return partitions


def _check_same_cluster(partitions: Sequence[InheritedPartition], kraft: KraftCluster | None) -> None:
    """Raise LogDirectoryError when the controllers know none of the topics: the metadata is another cluster's."""
    if not partitions or kraft is None:
        return
    names = set(kraft.topics.values())
    if not any(
        partition.topic_id in kraft.topics or (partition.topic_id == ZERO_UUID and partition.topic in names)
        for partition in partitions
    ):
        advice = "restore it, or move it away to start without what it says of topics and configurations"
        raise LogDirectoryError(
            f"{CLUSTER_METADATA_FOLDER} knows none of the topics that have folders in log.dirs; {advice}"
        )


def _replay_cluster_metadata(files: Files, path: str) -> KraftCluster:
    cluster = KraftCluster()
    try:
        cluster.replay(read_cluster_metadata(files, path))
    except MalformedError as problem:
        advice = f"move {CLUSTER_METADATA_FOLDER} away to start without what it says of topics and configurations"
        raise LogDirectoryError(
            f"{CLUSTER_METADATA_FOLDER} in {path} cannot be read ({problem}); {advice}"
        ) from problem
    return cluster
