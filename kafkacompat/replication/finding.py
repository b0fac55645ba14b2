"""What a start finds in the log directories: where each topic's partitions live, and moves that were cut off."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkacompat.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from kafkacompat.metadata.image import TopicImage
    from kafkacompat.replication.directories import Directories, Directory, PartitionName

log = logging.getLogger(__name__)


async def find_partitions(directories: Directories, topics: Mapping[str, TopicImage]) -> None:
    """Note where each topic's partitions live, and which were being moved where.

    Folders of no topic are left as they are: a topic was deleted when a crash came, or another broker
    made them. Should their name be needed, they are set aside then.
    """
    for directory in directories:
        for name in await directory.disk.run(directory.storage.take_copies):
            if name[0] in topics:
                # It was being moved here when the broker stopped: once more from the beginning.
                directories.wish(name, directory)
        for stored in await directory.disk.run(directory.storage.partitions):
            topic = topics.get(stored.topic)
            if topic is not None and stored.topic_id in (topic.topic_id, ZERO_UUID):
                await _found(directories, (stored.topic, stored.partition), directory)
            else:
                folder = directory.storage.folder(stored.topic, stored.partition)
                log.warning("%s belongs to no topic of this cluster and is left alone", folder)


async def _found(directories: Directories, name: PartitionName, directory: Directory) -> None:
    """Note where a partition lives; of two logs of one name, whose move a crash cut off, the newer one counts."""
    other = directories.home(name)
    if other is None:
        directories.found(name, directory)
        return
    here, there = [await each.disk.run(each.storage.progress, *name) for each in (directory, other)]
    newer, older = (directory, other) if here > there else (other, directory)
    directories.forget(name)
    directories.found(name, newer)
    aside = await older.disk.run(older.storage.set_aside, *name)
    reason = "%s-%d is in %s and in %s; the older one is set aside there as %s and may be removed"
    log.warning(reason, *name, newer.path, older.path, aside)
