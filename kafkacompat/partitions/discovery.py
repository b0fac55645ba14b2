"""Finding partitions at a start: which log directory holds each, and which moves a crash interrupted."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.metadata.codec import decode_image
from kafkacompat.metadata.store import StoreError
from kafkacompat.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES
from kafkacompat.storage.directory.meta_properties import LogDirectoryError
from kafkacompat.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.image import TopicImage
    from kafkacompat.metadata.store import NodeStore
    from kafkacompat.partitions.directories import Directories, Directory, PartitionName
    from kafkacompat.storage.directory.log_directory import StoredPartition
    from kafkacompat.storage.files.filesystem import Files

log = logging.getLogger(__name__)

MAX_MISSING_NAMED = 100
"""Partitions that one log line names."""


async def check_new_directories(files: Files, config: BrokerConfig, store: NodeStore) -> None:
    """Raise LogDirectoryError for a new log directory while partitions are missing: its disk may not be mounted.

    A metadata store that is new or cannot be read names no partitions, so that nothing is missing then.
    """
    new = [path for path in config.log_dirs if not files.exists(os.path.join(path, META_PROPERTIES))]
    if not new or not files.exists(str(store.path)):
        return
    try:
        topics = decode_image(await store.load()).topics
    except StoreError:
        return
    known = {f"{name}-{image.partition}" for name, topic in topics.items() for image in topic.partitions}
    missing = sorted(known.difference(*(files.list(path) for path in config.log_dirs if files.is_directory(path))))
    if missing:
        problem = f"is new, but {len(missing)} partitions, such as {missing[0]}, have no folder in any of log.dirs"
        advice = f"mount its disk, or make a {META_PROPERTIES} with the line version=1 there to let them begin empty"
        raise LogDirectoryError(f"log directory {new[0]} {problem}: {advice}")


async def find_partitions(
    directories: Directories,
    topics: Mapping[str, TopicImage],
    *,
    damaged: Collection[str] = (),
    strays_stay: bool = False,
) -> None:
    """Note which directory holds each partition, and which partitions were being moved where.

    Folders that belong to no topic are set aside, as Kafka does: a crash interrupted a deletion, or another broker made
    them. So are copies whose partition is in no directory. Folders of topics whose metadata is *damaged* keep their place. With *strays_stay* they stay for `list_strays`.
    """
    for directory in directories:
        for stored in await directory.disk.run(directory.storage.list_partitions):
            if stored.topic in damaged or _is_partition_of_topic(stored, topics.get(stored.topic)):
                await _note_home(directories, (stored.topic, stored.partition), directory)
    for directory in directories:
        for folder, name in (await directory.disk.run(directory.storage.find_copies)).items():
            if directories.find_home(name):
                await directory.disk.run(directory.storage.remove_copy, folder)
                # The partition was being moved here when the broker stopped: the move begins again.
                directories.note_wish(name, directory)
    if not strays_stay:
        for stray in await list_strays(directories):
            await stray.set_aside()
        _name_missing(directories, topics.values())


class Stray(NamedTuple):
    """The folder of a partition that the broker has elsewhere or not at all, or of a copy whose partition is nowhere."""

    directory: Directory
    name: PartitionName
    copy: str | None

    async def set_aside(self) -> None:
        """Rename the folder. A folder with a partition's name and no log in it stays."""
        disk, storage = self.directory.disk, self.directory.storage
        if self.copy is not None:
            aside = await disk.run(storage.set_copy_aside, self.copy)
            log.warning("%s is a copy of a partition that is nowhere else and is set aside as %s", self.copy, aside)
        elif (renamed := await disk.run(storage.set_stray_aside, *self.name)) is not None:
            folder = storage.folder(*self.name)
            log.warning("%s belongs to no topic of this cluster and is set aside as %s", folder, renamed)


async def list_strays(directories: Directories) -> list[Stray]:
    """Return the folders in the log directories that are in no use."""
    strays: list[Stray] = []
    for directory in directories:
        if directory.offline:
            continue
        for stored in await directory.disk.run(directory.storage.list_partitions):
            name = (stored.topic, stored.partition)
            if directories.find_home(name) is not directory:
                strays.append(Stray(directory, name, None))
        for folder, name in (await directory.disk.run(directory.storage.find_copies)).items():
            if directories.find_home(name) is None:
                strays.append(Stray(directory, name, folder))
    return strays


def _name_missing(directories: Directories, topics: Iterable[TopicImage]) -> None:
    names = ((topic.name, image.partition) for topic in topics for image in topic.partitions)
    missing = [f"{topic}-{index}" for topic, index in names if directories.find_home((topic, index)) is None]
    if missing:
        named = ", ".join(missing[:MAX_MISSING_NAMED]) + (" ..." if len(missing) > MAX_MISSING_NAMED else "")
        log.warning("%d partitions have no folder in any of log.dirs and begin empty: %s", len(missing), named)


def _is_partition_of_topic(stored: StoredPartition, topic: TopicImage | None) -> bool:
    """Return whether a folder is a partition of the topic that it is named after."""
    if topic is None or stored.partition >= len(topic.partitions):
        return False
    return ZERO_UUID in (topic.topic_id, stored.topic_id) or stored.topic_id == topic.topic_id


async def _note_home(directories: Directories, name: PartitionName, directory: Directory) -> None:
    """Note which directory holds a partition; where a crash interrupted a move and left two logs, keep the newer one.

    Raises LogDirectoryError when both are one folder, by a link.
    """
    other = directories.find_home(name)
    if other is None:
        directories.note_partition(name, directory)
        return
    if await directory.disk.run(directory.storage.shares_folder, other.storage, *name):
        both = f"{directory.storage.folder(*name)} and {other.storage.folder(*name)}"
        raise LogDirectoryError(f"{both} are one folder: remove the link")
    progress, progress_of_other = [
        await holder.disk.run(holder.storage.rank_copy, *name) for holder in (directory, other)
    ]
    newer, older = (directory, other) if progress > progress_of_other else (other, directory)
    directories.forget(name)
    directories.note_partition(name, newer)
    aside = await older.disk.run(older.storage.set_aside, *name)
    reason = "%s-%d is in %s and in %s; the older one is set aside there as %s and may be removed"
    log.warning(reason, *name, newer.path, older.path, aside)
