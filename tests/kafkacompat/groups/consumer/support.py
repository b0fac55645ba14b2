"""A coordinator with topics, and members of the consumer protocol that behave like real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred

from kafkacompat.groups.consumer.contents import GroupContents
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.progress import ClientIdentity
from kafkacompat.metadata.image import PartitionImage, TopicImage
from kafkacompat.wire.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import GROUP, World, is_waiting, take_response

INTERVAL_S = 5
SESSION_S = 45
REBALANCE_MS = 30_000
CLIENT = ClientIdentity("client", "/127.0.0.1")

Partitions = Mapping[str, set[int]]


def topic_id(name: str, generation: int = 0) -> bytes:
    """Return the id of a topic; *generation* counts its creations."""
    return f"{name}{generation}".encode().ljust(16, b".")


def make_topic(name: str, partitions: int, generation: int = 0) -> TopicImage:
    led = (PartitionImage(number, 1, 0, (1,), (1,), 0) for number in range(partitions))
    return TopicImage(name, topic_id(name, generation), tuple(led))


class ConsumerWorld(World):
    """A coordinator, and topics: t of four partitions and u of two."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.set_topics(t=4, u=2)

    def set_topics(self, **partitions: int) -> None:
        """Publish metadata with exactly these topics."""
        self.publish(*(make_topic(name, count) for name, count in partitions.items()))

    def publish(self, *topics: TopicImage) -> None:
        image = self.metadata.image
        self.metadata.publish(image.with_topics({topic.name: topic for topic in topics}))

    def group(self, name: str = GROUP) -> ConsumerGroup:
        group = self.coordinator._registry.by_id[name]
        assert isinstance(group, ConsumerGroup)
        return group

    def contents(self, name: str = GROUP) -> GroupContents:
        return self.group(name).contents

    def send(
        self, member_id: str, epoch: int, *, group: str = GROUP, needs_member_id: bool = True, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse | Deferred[ConsumerGroupHeartbeatResponse]:
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch)
        for field, value in fields.items():
            assert field in ConsumerGroupHeartbeatRequest.FIELDS
            setattr(request, field, value)
        return self.coordinator.consumer_heartbeat(request, CLIENT, needs_member_id=needs_member_id)

    def beat(self, member_id: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat, and return its response; a new pattern takes some turns."""
        answer = self.send(member_id, epoch, **fields)
        self.turn(5 if is_waiting(answer) else 0)
        return take_response(answer)

    def come(self, member_id: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Let a member join."""
        joining: dict[str, Any] = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": list(topics),
            "topic_partitions": [],
        }
        return self.beat(member_id, 0, **(joining | fields))

    def name_of(self, wanted: bytes) -> str:
        topic = self.metadata.image.topics_by_id.get(wanted)
        return topic.name if topic else wanted.decode()

    def owned(self, **partitions: set[int]) -> list[TopicPartitions]:
        """Return the partitions that a member reports to own."""
        topics = self.metadata.image.topics
        return [
            TopicPartitions(
                topic_id=topics[name].topic_id if name in topics else topic_id(name), partitions=sorted(some)
            )
            for name, some in partitions.items()
        ]

    def read(self, response: ConsumerGroupHeartbeatResponse) -> dict[str, set[int]] | None:
        """Return the assignment in a response, by topic name."""
        if response.assignment is None:
            return None
        return {self.name_of(part.topic_id): set(part.partitions) for part in response.assignment.topic_partitions}


class Consumer:
    """A member that obeys: it gives up and takes partitions with its next heartbeat."""

    def __init__(self, world: ConsumerWorld, member_id: str, *topics: str, **fields: Any) -> None:
        self.world = world
        self.member_id = member_id
        self.topics = topics
        self.fields = fields
        self.epoch = 0
        self.has: dict[str, set[int]] = {}
        self._said: dict[str, set[int]] | None = None

    def join(self) -> Consumer:
        self.epoch, self.has, self._said = 0, {}, {}
        self._heard(self.world.come(self.member_id, *self.topics, **self.fields))
        return self

    def beat(self, **fields: Any) -> Consumer:
        """Send a heartbeat with the changes since the last one; rejoin after an error."""
        if self.has != self._said:
            fields.setdefault("topic_partitions", self.world.owned(**self.has))
        self._said = {name: set(some) for name, some in self.has.items()}
        response = self.world.beat(self.member_id, self.epoch, **fields)
        if response.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            return self.join()
        self._heard(response)
        return self

    def _heard(self, response: ConsumerGroupHeartbeatResponse) -> None:
        assert not response.error_code, response
        self.epoch = response.member_epoch
        assignment = self.world.read(response)
        if assignment is not None:
            self.has = assignment


def settle_members(world: ConsumerWorld, *consumers: Consumer) -> None:
    """Let all members send heartbeats until nothing changes any more."""
    for _ in range(8):
        world.wait(1)
        for consumer in consumers:
            consumer.beat()
