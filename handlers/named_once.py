"""For requests that may name each topic once: a topic that is named more often is rejected altogether."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

from kafkacompat.wire.errors import ErrorCode, KafkaError

NAMED_TWICE = KafkaError(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")


class NamedTopic(Protocol):
    """A topic in a request."""

    name: str


AnyNamedTopic = TypeVar("AnyNamedTopic", bound=NamedTopic)


def split_duplicates(topics: Sequence[AnyNamedTopic]) -> tuple[list[AnyNamedTopic], list[str]]:
    """Return the topics that are named once, and the names of the others, each once."""
    times = Counter(topic.name for topic in topics)
    return [topic for topic in topics if times[topic.name] == 1], [name for name in times if times[name] > 1]
