"""The interface of consumer groups to the conversion of groups. This package does not know classic groups."""

from __future__ import annotations

from typing import Protocol

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.consumer.contents import GroupContents
from kafkacompat.groups.consumer.draft import GroupDraft
from kafkacompat.groups.consumer.group import ConsumerGroup


class Conversion(Protocol):
    """Converts groups from one kind to the other. Every method is called inside `Outbox.run`."""

    def consumer_draft(self, classic: AnyGroup) -> GroupDraft:
        """Return a classic group with members as a consumer group.

        Raises KafkaError: GROUP_ID_NOT_FOUND, if it cannot be converted.
        """
        ...

    def retire_classic(self, classic: AnyGroup) -> None:
        """Remove a classic group, which a consumer group replaces, from the registry. Its members have to rejoin."""
        ...

    def make_classic(self, group: ConsumerGroup, contents: GroupContents, reason: str | None) -> list[Record]:
        """Replace *group*, which has *contents*, by a classic group. With a *reason*, the classic group rebalances.

        All members have to speak the classic protocol. Returns the records to write.
        """
        ...

    def make_empty_classic(self, group: ConsumerGroup) -> list[Record]:
        """Replace an empty group by an empty classic group; returns the records to write."""
        ...
