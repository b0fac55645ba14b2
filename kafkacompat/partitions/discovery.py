"""What a start finds in the log directories: where each topic's partitions live, and moves that were cut off."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafkacompat.metadata.codec import decode_image
from kafkacompat.metadata.store import StoreError
from kafkacompat.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES
from kafkacompat.storage.directory.meta_properties import LogDirectoryError
from kafkacompat.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.image import TopicImage
    from kafkacompat.metadata.sqlite_store import SqliteStore
    from kafkacompat.partitions.directories import Directories, Directory, PartitionName
    from kafkacompat.storage.directory.log_directory import StoredPartition
    from kafkacompat.storage.files.filesystem import Files

log = logging.getLogger(__name__)

MAX_MISSING_NAMED = 100
"""So many partitions are named in one line of the log."""


async def check_new_directories(files: Files, config: BrokerConfig, store: SqliteStore) -> None:
    """Refuse a log directory that nobody used yet while partitions are missing: its disk may not be mounted.

    Raises LogDirectoryError. A new store, or one that cannot be read, names no partitions.
    """
    new = [path for path in config.log_dirs if not files.exists(os.path.join(path, META_PROPERTIES))]
    if not new or not files.exists(str(store.path)):
        return
    try:
        topics = decode_image(await store.load()).topics
    except StoreError:
        return
    known = {f"{name}-{each.partition}" for name, topic in topics.items() for each in topic.partitions}
    missing = sorted(known.difference(*(files.list(path) for path in config.log_dirs if files.is_directory(path))))
    if missing:
        words = f"is new, but {len(missing)} partitions, such as {missing[0]}, have no folder in any of log.dirs"
        ways = f"mount its disk, or make a {META_PROPERTIES} with the line version=1 there to let them begin empty"
        raise LogDirectoryError(f"log directory {new[0]} {words}: {ways}")


async def find_partitions(directories: Directories, topics: Mapping[str, TopicImage]) -> None:
    """Note where each topic's partitions live, and which were being moved where.

    Folders of no topic are set aside, as Kafka does: a topic was deleted when a crash came, or another broker made
    them. So are copies whose partition is nowhere.
    """
    for directory in directories:
        for stored in await directory.disk.run(directory.storage.partitions):
            name = (stored.topic, stored.partition)
            if _belongs(stored, topics.get(stored.topic)):
                await _found(directories, name, directory)
            elif aside := await directory.disk.run(directory.storage.set_stray_aside, *name):
                folder = directory.storage.folder(*name)
                log.warning("%s belongs to no topic of this cluster and is set aside as %s", folder, aside)
    for directory in directories:
        for folder, name in (await directory.disk.run(directory.storage.copies)).items():
            await _take_copy(directories, directory, folder, name)
    _name_missing(directories, topics.values())


def _name_missing(directories: Directories, topics: Iterable[TopicImage]) -> None:
    names = ((topic.name, each.partition) for topic in topics for each in topic.partitions)
    missing = [f"{topic}-{index}" for topic, index in names if directories.home((topic, index)) is None]
    if missing:
        some = ", ".join(missing[:MAX_MISSING_NAMED]) + (" ..." if len(missing) > MAX_MISSING_NAMED else "")
        log.warning("%d partitions have no folder in any of log.dirs and begin empty: %s", len(missing), some)


async def _take_copy(directories: Directories, directory: Directory, folder: str, name: PartitionName) -> None:
    if directories.home(name):
        await directory.disk.run(directory.storage.remove_copy, folder)
        # It was being moved here when the broker stopped: once more from the beginning.
        directories.wish(name, directory)
    else:
        aside = await directory.disk.run(directory.storage.set_copy_aside, folder)
        log.warning("%s is a copy of a partition that is nowhere else and is set aside as %s", folder, aside)


def _belongs(stored: StoredPartition, topic: TopicImage | None) -> bool:
    """Whether a folder is a partition of the topic of its name."""
    if topic is None or stored.partition >= len(topic.partitions):
        return False
    return stored.topic_id in (topic.topic_id, ZERO_UUID)


async def _found(directories: Directories, name: PartitionName, directory: Directory) -> None:
    """Note where a partition lives; of two logs of one name, whose move a crash cut off, the newer one counts.

    Raises LogDirectoryError when both are one, by a link.
    """
    other = directories.home(name)
    if other is None:
        directories.found(name, directory)
        return
    if await directory.disk.run(directory.storage.shares_folder, other.storage, *name):
        both = f"{directory.storage.folder(*name)} and {other.storage.folder(*name)}"
        raise LogDirectoryError(f"{both} are one folder: remove the link")
    here, there = [await each.disk.run(each.storage.progress, *name) for each in (directory, other)]
    newer, older = (directory, other) if here > there else (other, directory)
    directories.forget(name)
    directories.found(name, newer)
    aside = await older.disk.run(older.storage.set_aside, *name)
    reason = "%s-%d is in %s and in %s; the older one is set aside there as %s and may be removed"
    log.warning(reason, *name, newer.path, older.path, aside)
