"""What a starting broker may have lost of its replicas: with a log directory, or with the page cache of its machine.

A replica that is gone must not lead, or the others would truncate their logs to an empty one. A replica that may lack its last
records leads only where nobody else can (docs/decisions/012-lost-replicas.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kafkacompat.metadata.image import Losses, PartitionImage, TopicImage

if TYPE_CHECKING:
    from kafkacompat.partitions.directories import Directories
    from kafkacompat.storage.directory.last_start import LastStart

log = logging.getLogger(__name__)

MOST_NAMED = 100
"""Partitions that one log line names."""


class ReplicaLosses:
    """The losses of one start, by what the cluster's metadata expects of broker *node_id*.

    ``allows_unclean`` says whether a topic allows unclean elections. With *syncs_always* appends count only once they are synced,
    so that no page cache can be lost.
    """

    def __init__(
        self, node_id: int, directories: Directories, allows_unclean: Callable[[str], bool], *, syncs_always: bool
    ) -> None:
        self._node_id = node_id
        self._directories = directories
        self._allows_unclean = allows_unclean
        self._syncs_always = syncs_always
        self._misses_replicas = False

    def examine(self, topics: Mapping[str, TopicImage]) -> None:
        """Compare the log directories with the metadata of this start, and log what is missing."""
        own = [*self._list_in_sync(topics.values())]
        missing = [_name(topic, partition) for topic, partition in own if self.is_lost(topic, partition)]
        self._misses_replicas = bool(missing)
        if missing:
            log.error(
                "A log directory is new or offline, and %d partitions of this broker have no folder in any: %s; mount the disk"
                " and start again. Otherwise other in-sync replicas lead, and this broker copies the partitions from them."
                " To let a partition without any other replica begin empty, set unclean.leader.election.enable=true for its"
                " topic and start again",
                len(missing),
                name_some(missing),
            )
        if self.find().records:
            sole = [_name(topic, image) for topic, image in own if image.in_sync_replicas == (self._node_id,)]
            log.warning(
                "The machine has restarted since this broker was killed, and records that were not on the disk are lost."
                " No other replica is in sync for %d of its partitions: %s",
                len(sole),
                name_some(sole) or "none",
            )

    def _list_in_sync(self, topics: Iterable[TopicImage]) -> Iterator[tuple[str, PartitionImage]]:
        for topic in topics:
            for partition in topic.partitions:
                if self._node_id in partition.in_sync_replicas:
                    yield topic.name, partition

    def find(self) -> Losses:
        """Return the losses that the controller does not know yet."""
        page_cache = any(start.lost_page_cache for start in self._list_starts())
        return Losses(self._misses_replicas, page_cache and not self._syncs_always)

    def is_lost(self, topic: str, partition: PartitionImage, *, is_new: bool = False) -> bool:
        """Return whether this broker should have a replica, but a log directory that is new or offline may have had it.

        A folder that is missing in known directories was never synced after the creation of its partition.
        """
        return (
            not is_new
            and self._node_id in partition.in_sync_replicas
            and self._directories.find_home((topic, partition.partition)) is None
            and self._misses_directory()
            and not self._may_begin_empty(topic, partition)
        )

    def _misses_directory(self) -> bool:
        is_offline = any(directory.offline for directory in self._directories)
        return is_offline or any(start.began_empty for start in self._list_starts())

    def _list_starts(self) -> list[LastStart]:
        starts = (directory.storage.start for directory in self._directories)
        return [start for start in starts if start is not None]

    def _may_begin_empty(self, topic: str, partition: PartitionImage) -> bool:
        """Return whether an unclean election has chosen this replica, or would have no other to choose."""
        is_alone = partition.replicas == (self._node_id,)
        return (is_alone or partition.is_recovering) and self._allows_unclean(topic)

    async def confirm(self) -> None:
        """Note that the controller knows the losses, and has given every partition a role without what is lost."""
        self._misses_replicas = False
        for directory in self._directories:
            try:
                await directory.disk.run(directory.storage.confirm_contents)
            except OSError as problem:
                log.warning("The start of log directory %s is noted at the next one: %s", directory.path, problem)


def _name(topic: str, partition: PartitionImage) -> str:
    return f"{topic}-{partition.partition}"


def name_some(names: Sequence[str]) -> str:
    """Name partitions for a log line, at most MOST_NAMED."""
    return ", ".join(names[:MOST_NAMED]) + (" ..." if len(names) > MOST_NAMED else "")
