"""Creating a coordinator's topic when the first client needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from twisted.internet.defer import Deferred, succeed

from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.metadata.image import ImageHolder, TopicImage
    from kafkacompat.metadata.topic_changes import NewTopic

CreateTopics: TypeAlias = "Callable[[list[NewTopic]], Deferred[list[TopicImage | KafkaError]]]"


class InternalTopic:
    """Creates one topic once, however many callers need it at the same time; ``create_topics`` is the controller's."""

    def __init__(self, topic: NewTopic, create_topics: CreateTopics, metadata: ImageHolder) -> None:
        self._topic = topic
        self._create_topics = create_topics
        self._metadata = metadata
        self._waiting: list[Deferred[None]] = []

    def ensure_exists(self) -> Deferred[None]:
        """Create the topic unless it exists. Fires when it exists; calls in the meantime wait for the same creation."""
        if self._topic.name in self._metadata.image.topics:
            return succeed(None)
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        if len(self._waiting) == 1:
            self._create_topics([self._topic]).addCallback(_raise_problem).addBoth(self._on_created)
        return waiting

    def _on_created(self, result: object) -> None:
        waiting, self._waiting = self._waiting, []
        for deferred in waiting:
            deferred.callback(result)  # type: ignore[arg-type]  # None, or the failure for each of them


def _raise_problem(results: list[TopicImage | KafkaError]) -> None:
    problem = results[0]
    if isinstance(problem, KafkaError) and problem.code != ErrorCode.TOPIC_ALREADY_EXISTS:
        raise problem
