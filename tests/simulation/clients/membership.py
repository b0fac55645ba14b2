"""What the two group protocols have in common for their users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kafkacompat.history.events import HistoryPartition
from tests.simulation.clients.coordinators import Coordinator
from tests.simulation.clients.group_offsets import GroupMember


class Membership(Protocol):
    """One stay in a group.

    ``on_revoked(partitions)`` and ``on_assigned(partitions)`` are called when the member loses and gets partitions.
    """

    coordinator: Coordinator
    on_revoked: Callable[[Sequence[HistoryPartition]], None]
    on_assigned: Callable[[Sequence[HistoryPartition]], None]

    @property
    def member(self) -> GroupMember:
        """The member as the coordinator knows it."""

    async def stay(self) -> None:
        """Join, and take part until the stay is over."""

    async def leave(self) -> None:
        """Leave the group, and end the stay."""

    def abandon(self) -> None:
        """End the stay without a word."""
