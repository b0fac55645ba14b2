"""Making a coordinator's topic when the first client needs it."""

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
    """Makes one topic once, however many ask for it at the same time; ``create_topics`` is the controller's."""

    def __init__(self, topic: NewTopic, create_topics: CreateTopics, metadata: ImageHolder) -> None:
        self._topic = topic
        self._create_topics = create_topics
        self._metadata = metadata
        self._making: list[Deferred[None]] = []

    def ensure(self) -> Deferred[None]:
        """Make the topic unless it is there; whoever asks meanwhile waits for the same."""
        if self._topic.name in self._metadata.image.topics:
            return succeed(None)
        waiting: Deferred[None] = Deferred()
        self._making.append(waiting)
        if len(self._making) == 1:
            self._create_topics([self._topic]).addCallback(_check).addBoth(self._made)
        return waiting

    def _made(self, result: object) -> None:
        waiting, self._making = self._making, []
        for deferred in waiting:
            deferred.callback(result)  # type: ignore[arg-type]  # None, or the failure for each of them


def _check(results: list[TopicImage | KafkaError]) -> None:
    problem = results[0]
    if isinstance(problem, KafkaError) and problem.code != ErrorCode.TOPIC_ALREADY_EXISTS:
        raise problem
