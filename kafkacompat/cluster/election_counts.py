"""How many leaders this broker has elected as the controller."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkacompat.metadata.image import NO_LEADER

if TYPE_CHECKING:
    from kafkacompat.cluster.decisions.situation import TopicPartition
    from kafkacompat.metadata.image import MetadataImage


@dataclass(slots=True)
class ElectionCounts:
    """The elections, and those of a replica that was not in sync, which lose records."""

    elections: int = 0
    unclean: int = 0

    def note_changes(self, old: MetadataImage, new: MetadataImage, changed: Collection[TopicPartition]) -> None:
        """Count the *changed* partitions that have another leader in the *new* image than in the *old* one."""
        for key in changed:
            before, after = old.partition(*key), new.partition(*key)
            if before is None or after is None or after.leader in (NO_LEADER, before.leader):
                continue
            self.elections += 1
            self.unclean += before.has_state and after.leader not in before.in_sync_replicas
