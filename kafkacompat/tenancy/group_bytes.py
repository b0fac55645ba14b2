"""The topics in the bytes that classic consumers exchange: subscriptions and assignments, with other names.

Only the names change. Bytes that are not what consumers write, and the data of a client's own assignor, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from kafkacompat.wire.consumer_protocol import replace_topics, replace_topics_in_steps
from kafkacompat.wire.schema import Message


class GroupBytes:
    """A translation of the bytes that hold a *message*; *rename* translates each topic in them."""

    def __init__(self, message: type[Message], rename: Callable[[str], str]) -> None:
        self._message = message
        self._rename = rename

    def __getitem__(self, data: bytes) -> bytes:
        return replace_topics(self._message, data, self._rename)

    def in_steps(self, data: bytes) -> Generator[None, None, bytes]:
        """Translate many names in short steps; the result is what the generator returns."""
        return replace_topics_in_steps(self._message, data, self._rename)
