"""Log directories that have topics although the metadata store has none: Kafka's, or ours whose store was lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from kafkacompat.metadata.inheritance import FoundPartition, Inheritance
from kafkacompat.metadata.kraft import KraftCluster
from kafkacompat.metadata.store import StoreError
from kafkacompat.storage.directory import takeover_mark
from kafkacompat.storage.directory.cluster_metadata import FOLDER, cluster_metadata_values
from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.directory.meta_properties import LogDirectoryError, cluster_of, read_owners
from kafkacompat.storage.directory.partition_survey import survey
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.wire.primitives import ZERO_UUID, MalformedError

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.disk import Disk
    from kafkacompat.metadata.sqlite_store import SqliteStore
    from kafkacompat.partitions.directories import Directories

log = logging.getLogger(__name__)


class Takeover:
    """Looks at what a new store begins with, and afterwards whether Kafka has run on the directories meanwhile."""

    def __init__(
        self, config: BrokerConfig, store: SqliteStore, files: Files, disk_of: Callable[[str], Disk], rng: Random
    ) -> None:
        self._config = config
        self._store = store
        self._files = files
        self._disk_of = disk_of
        self._rng = rng
        self._inheritance: Inheritance | None = None

    async def set_damaged_store_aside(self) -> None:
        """Let the broker begin with a new store where the old one cannot be read; raises StoreError."""
        if name := await self._store.set_aside_if_damaged():
            log.error("%s is damaged: it is now %s, and a new one is begun", self._store.path, name)

    async def inherit(self, directories: Directories) -> Inheritance:
        """What a new store begins with; raises LogDirectoryError."""
        found: list[FoundPartition] = []
        try:
            for directory in directories:
                found += await directory.disk.run(_found, self._files, directory.storage)
            kraft = await self._kraft()
        except OSError as problem:
            raise LogDirectoryError(
                f"the partitions in log.dirs cannot be looked at ({problem}); repair that"
            ) from problem
        _check_belonging(found, kraft)
        self._inheritance = Inheritance(self._config, found, kraft, self._rng)
        if found:
            words = "%s is new: topics, with %d folders of partitions, are taken over from log.dirs; offsets committed \
by OffsetCommit 0, in ZooKeeper or in a store that was lost, are not"
            log.warning(words, self._store.path, len(found))
        return self._inheritance

    async def _kraft(self) -> KraftCluster | None:
        """What Kafka's controllers wrote, unless they wrote it before this broker last took over."""
        new = []
        for path in await self._with_cluster_metadata():
            if await self._disk_of(path).run(takeover_mark.is_older, self._files, path):
                log.warning("%s in %s is older than the metadata that was lost and not made use of", FOLDER, path)
            else:
                new.append(path)
        if len(new) > 1:
            advice = "move all away but the one that Kafka used last"
            raise LogDirectoryError(f"{' and '.join(new)} each have a {FOLDER}; {advice}")
        return await self._disk_of(new[0]).run(_read, self._files, new[0]) if new else None

    async def _with_cluster_metadata(self) -> Sequence[str]:
        paths = dict.fromkeys((self._config.metadata_log_dir, *self._config.log_dirs))
        return [
            path
            for path in paths
            if await self._disk_of(path).run(takeover_mark.has_cluster_metadata, self._files, path)
        ]

    async def complete(self) -> None:
        """Note that the directories are taken over.

        Raises StoreError when Kafka has run on them since: what it changed is not in the store.
        """
        for warning in self._inheritance.warnings if self._inheritance else ():
            log.warning("%s", warning)
        for path in await self._with_cluster_metadata():
            disk = self._disk_of(path)
            if await disk.run(takeover_mark.is_unchanged, self._files, path):
                continue
            if self._inheritance is None and await disk.run(takeover_mark.is_marked, self._files, path):
                ways = f"move {self._store.path} away to take over what Kafka left, or remove \
{takeover_mark.FILE_NAME} there to go on as if Kafka had not run"
                raise StoreError(f"Apache Kafka has run on {path} since this broker did: {ways}")
            await disk.run(takeover_mark.mark, self._files, path)


def owning_cluster(files: Files, config: BrokerConfig) -> str | None:
    """The cluster that the directories belong to, all of them, before any is taken.

    Raises LogDirectoryError: one that is refused leaves no mark on the others.
    """
    return cluster_of(files, (*config.log_dirs, config.metadata_log_dir), config.node_id)


def may_go_back(files: Files, config: BrokerConfig) -> bool:
    """Whether the log directories were those of a Kafka, which may get them back."""
    if any(owner.version == 0 for owner in read_owners(files, config.log_dirs)):
        return True
    return any(takeover_mark.has_cluster_metadata(files, path) for path in (config.metadata_log_dir, *config.log_dirs))


def _found(files: Files, storage: LogDirectory) -> list[FoundPartition]:
    """The partitions that have a log in a directory."""
    found = []
    for stored in storage.partitions():
        folder = storage.folder(stored.topic, stored.partition)
        if surveyed := survey(files, folder, clean_shutdown=storage.clean_shutdown):
            found.append(FoundPartition(*stored, *surveyed))
    return found


def _check_belonging(found: Sequence[FoundPartition], kraft: KraftCluster | None) -> None:
    """Raise LogDirectoryError when no folder at all is of a topic that the controllers know: they are not its own."""
    if not found or kraft is None:
        return
    names = set(kraft.topics.values())
    if not any(each.topic_id in kraft.topics or (each.topic_id == ZERO_UUID and each.topic in names) for each in found):
        advice = "restore it, or move it away to start without what it says of topics and configurations"
        raise LogDirectoryError(f"{FOLDER} knows none of the topics that have folders in log.dirs; {advice}")


def _read(files: Files, path: str) -> KraftCluster:
    cluster = KraftCluster()
    try:
        cluster.replay(cluster_metadata_values(files, path))
    except MalformedError as problem:
        advice = f"move {FOLDER} away to start without what it says of topics and configurations"
        raise LogDirectoryError(f"{FOLDER} in {path} cannot be read ({problem}); {advice}") from problem
    return cluster
