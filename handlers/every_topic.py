"""All topics of an instance, where a request for all topics was one for all topics of the brokers."""

from __future__ import annotations

from typing import Any


class EveryTopic(list[Any]):
    """The topics in place of a request for all topics: guards leave out those that a client may not describe."""
