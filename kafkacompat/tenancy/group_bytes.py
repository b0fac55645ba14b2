"""The topics in the bytes that classic consumers exchange: subscriptions and assignments, with other names.

Only the names change. Bytes that are not what consumers write, and the data of a client's own assignor, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacompat.wire import entities
from kafkacompat.wire.consumer_protocol import replace_assigned_topics, replace_subscribed_topics

if TYPE_CHECKING:
    from kafkacompat.tenancy.names import Names

Translate = Callable[[str], str]


class GroupBytes:
    """Translates the bytes of one instance's members. A topic that is not the instance's keeps its name."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def _to_physical(self, topic: str) -> str:
        physical: str = self._names.to_physical[entities.TOPIC][topic]
        return physical

    def _to_client(self, topic: str) -> str:
        from kafkacompat.tenancy.names import FOREIGN

        name = self._names.to_client[entities.TOPIC][topic]
        return "" if name is FOREIGN else str(name)

    def subscription_to_physical(self, data: bytes) -> bytes:
        """Return a member's metadata for the broker."""
        return replace_subscribed_topics(data, self._to_physical)

    def subscription_to_client(self, data: bytes) -> bytes:
        """Return a member's metadata for clients."""
        return replace_subscribed_topics(data, self._to_client)

    def assignment_to_physical(self, data: bytes) -> bytes:
        """Return a member's assignment for the broker."""
        return replace_assigned_topics(data, self._to_physical)

    def assignment_to_client(self, data: bytes) -> bytes:
        """Return a member's assignment for clients."""
        return replace_assigned_topics(data, self._to_client)
