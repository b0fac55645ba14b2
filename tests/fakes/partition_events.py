"""The events of a controller for its replicas, recorded for tests, which answer them."""

from __future__ import annotations

from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.metadata.image import TopicImage


class RecordingEvents:
    """Records events in ``notifications``; with ``hold`` it answers only when a test fires ``waiting``."""

    def __init__(self) -> None:
        self.notifications: list[tuple[str, str]] = []
        self.hold = False
        self.waiting: list[Deferred[None]] = []
        self.broken: set[str] = set()

    def open_partitions(self, topic: TopicImage) -> Deferred[None]:
        return self._tell("open", topic.name)

    def delete_partitions(self, topic: TopicImage) -> Deferred[None]:
        return self._tell("delete", topic.name)

    def configs_changed(self, topic: TopicImage) -> None:
        self.notifications.append(("configure", topic.name))

    def _tell(self, event: str, topic: str) -> Deferred[None]:
        self.notifications.append((event, topic))
        if topic in self.broken:
            return fail(OSError(f"{topic} is broken, as it was told to be"))
        if not self.hold:
            return succeed(None)
        self.waiting.append(Deferred())
        return self.waiting[-1]
