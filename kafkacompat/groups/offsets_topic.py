"""Making the offsets topic when the first group needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed

from kafkacompat.groups.offsets_log import OFFSETS_TOPIC
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.controller import Controller
    from kafkacompat.metadata.image import ImageHolder, TopicImage


class OffsetsTopic:
    """Makes the topic once, however many ask for it at the same time."""

    def __init__(self, config: BrokerConfig, controller: Controller, metadata: ImageHolder) -> None:
        self._config = config
        self._controller = controller
        self._metadata = metadata
        self._making: list[Deferred[None]] = []

    def ensure(self) -> Deferred[None]:
        """Make the topic unless it is there; whoever asks meanwhile waits for the same."""
        if OFFSETS_TOPIC in self._metadata.image.topics:
            return succeed(None)
        waiting: Deferred[None] = Deferred()
        self._making.append(waiting)
        if len(self._making) == 1:
            self._make().addBoth(self._made)
        return waiting

    def _make(self) -> Deferred[None]:
        config = self._config
        topic = NewTopic(
            OFFSETS_TOPIC,
            config.int("offsets.topic.num.partitions"),
            config.int("offsets.topic.replication.factor"),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
            },
        )
        return self._controller.create_topics([topic]).addCallback(_check)

    def _made(self, result: object) -> None:
        waiting, self._making = self._making, []
        for deferred in waiting:
            deferred.callback(result)  # type: ignore[arg-type]  # None, or the failure for each of them


def _check(results: list[TopicImage | KafkaError]) -> None:
    problem = results[0]
    if isinstance(problem, KafkaError) and problem.code != ErrorCode.TOPIC_ALREADY_EXISTS:
        raise problem
