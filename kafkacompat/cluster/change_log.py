"""The changes of leaders, in-sync sets and the controller as a broker learns of them, in its log.

A broker that fails in a large cluster changes thousands of partitions at once. So the number of lines a second has a limit, and one
line says how many were left out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kafkacompat.metadata.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage

if TYPE_CHECKING:
    from kafkacompat.timers import Clock

log = logging.getLogger(__name__)

LINES_A_SECOND = 20


class ClusterChangeLog:
    """Logs what differs between the images that a broker receives one after the other."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._period_ends = 0.0
        self._lines = 0
        self._left_out = 0

    def note_update(self, old: MetadataImage, new: MetadataImage, topics: Iterable[str]) -> None:
        """Log the changes from one image to the next, which differ in these topics only.

        A partition that was not known before is no change: the controller logs the topics that it creates.
        """
        if new.controller_id != old.controller_id and self._has_room():
            log.info("Broker %d is the controller", new.controller_id)
        for name in topics:
            before, after = old.topics.get(name), new.topics.get(name)
            if before is not None and after is not None and before.topic_id == after.topic_id:
                for partition in _list_changed(before, after):
                    if self._has_room():
                        _write_line(name, partition)

    def _has_room(self) -> bool:
        """Return whether there is room for a line in this second; otherwise it is counted."""
        now = self._clock.seconds()
        if now >= self._period_ends:
            self._lines, self._period_ends = 0, now + 1
        if self._lines < LINES_A_SECOND:
            self._lines += 1
            return True
        if not self._left_out:
            self._clock.callLater(self._period_ends - now, self._report_left_out)
        self._left_out += 1
        return False

    def _report_left_out(self) -> None:
        log.info("Left out %d more changes of leaders and in-sync sets in a second", self._left_out)
        self._left_out = 0


def _list_changed(before: TopicImage, after: TopicImage) -> Iterator[PartitionImage]:
    for old, new in zip(before.partitions, after.partitions, strict=False):
        if new is not old and old.has_state and _list_roles(new) != _list_roles(old):
            yield new


def _list_roles(partition: PartitionImage) -> tuple[object, ...]:
    return partition.leader, partition.leader_epoch, partition.in_sync_replicas


def _write_line(topic: str, partition: PartitionImage) -> None:
    leader = "no broker" if partition.leader == NO_LEADER else f"broker {partition.leader}"
    in_sync = ", ".join(map(str, sorted(partition.in_sync_replicas)))
    epoch = partition.leader_epoch
    log.info("%s-%d: %s leads in epoch %d (in sync: %s)", topic, partition.partition, leader, epoch, in_sync)
