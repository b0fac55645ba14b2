"""Members of the classic protocol in a consumer group that behave like real ones."""

from __future__ import annotations

from typing import Any

from kafkacompat.wire.apis.join_group import JoinGroupResponse
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    write_assignment,
    write_subscription,
)
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.support import ConsumerWorld
from tests.kafkacompat.groups.support import take_response


def write_topics(*topics: str, **owned: set[int]) -> bytes:
    parts = [TopicPartition(topic=name, partitions=sorted(some)) for name, some in owned.items()]
    return write_subscription(ConsumerProtocolSubscription(topics=list(topics), owned_partitions=parts), 1)


def write_partitions(**partitions: set[int]) -> bytes:
    parts = [TopicPartition(topic=name, partitions=sorted(some)) for name, some in partitions.items()]
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=parts), 1)


def read_partitions(data: bytes) -> dict[str, set[int]]:
    return {part.topic: set(part.partitions) for part in read_assignment(data).assigned_partitions}


class Classic:
    """A member of the classic protocol in a consumer group."""

    def __init__(self, world: ConsumerWorld, *topics: str, instance: str | None = None, member_id: str = "") -> None:
        self.world = world
        self.topics = topics
        self.instance = instance
        self.member_id = member_id
        self.generation = -1
        self.has: dict[str, set[int]] = {}

    def ask(self) -> JoinGroupResponse:
        metadata = write_topics(*self.topics, **self.has)
        return take_response(self.world.join(self.member_id, protocols=[("range", metadata)], instance=self.instance))

    def join(self) -> Classic:
        answer = self.ask()
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            answer = self.ask()
        assert not answer.error_code, answer
        self.member_id, self.generation = answer.member_id, answer.generation_id
        assert (answer.protocol_type, answer.protocol_name, answer.members) == ("consumer", "range", [])
        return self.sync()

    def sync(self) -> Classic:
        answer = take_response(self.world.sync(self.member_id, self.generation, instance=self.instance))
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return self.join()
        assert not answer.error_code, answer
        self.has = read_partitions(answer.assignment)
        return self

    def beat(self) -> ErrorCode:
        """Send a heartbeat, and rejoin if the response requires it."""
        code = self.world.heartbeat(self.member_id, self.generation, instance=self.instance)
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        return code


def settle_all(world: ConsumerWorld, *members: Any) -> None:
    for _ in range(8):
        world.wait(1)
        for member in members:
            member.beat()
