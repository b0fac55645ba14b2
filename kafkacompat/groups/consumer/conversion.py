"""What consumer groups ask for when a group changes its protocol; they do not know classic groups themselves."""

from __future__ import annotations

from typing import Protocol

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.consumer.contents import Contents
from kafkacompat.groups.consumer.draft import Draft
from kafkacompat.groups.consumer.group import ConsumerGroup


class Conversion(Protocol):
    """Makes groups of one kind of groups of the other; every method is called inside `Outbox.run`."""

    def consumer_draft(self, classic: AnyGroup) -> Draft:
        """Return what a classic group with members is as a consumer group.

        Raises KafkaError: GROUP_ID_NOT_FOUND, if it cannot be one.
        """
        ...

    def retire_classic(self, classic: AnyGroup) -> None:
        """Remove a classic group that a consumer group replaces from the registry: its members have to join again."""
        ...

    def make_classic(self, group: ConsumerGroup, contents: Contents, reason: str | None) -> list[Record]:
        """Replace *group*, which has *contents*, by a classic group, which rebalances if there is a *reason*.

        All members have to speak the classic protocol. Returns the records to write.
        """
        ...

    def make_empty_classic(self, group: ConsumerGroup) -> list[Record]:
        """Replace an empty group by an empty classic group; returns the records to write."""
        ...
