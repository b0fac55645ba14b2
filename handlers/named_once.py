"""Requests about topics in which each may be named once: what stands there more often is refused for every mention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

from kafkacompat.wire.errors import ErrorCode, KafkaError

NAMED_TWICE = KafkaError(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")


class Named(Protocol):
    """A topic as a request describes it."""

    name: str


AnyNamed = TypeVar("AnyNamed", bound=Named)


def named_once(topics: Sequence[AnyNamed]) -> tuple[list[AnyNamed], list[str]]:
    """The topics that are named once, and the names of the others, each once."""
    times = Counter(topic.name for topic in topics)
    return [topic for topic in topics if times[topic.name] == 1], [name for name in times if times[name] > 1]
