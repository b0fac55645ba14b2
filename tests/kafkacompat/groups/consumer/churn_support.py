"""Members that lose responses, get late ones, and meet a log that rejects appends. They name topics by id, as brokers do."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse, TopicPartitions
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.classic_support import read_partitions, write_topics
from tests.kafkacompat.groups.consumer.support import REBALANCE_MS, ConsumerWorld
from tests.kafkacompat.groups.support import GROUP, take_response

Partition = tuple[bytes, int]

LATER = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


class Member:
    """A member of the consumer protocol. It reads the partitions that it ``has`` until a response revokes them or it rejoins."""

    def __init__(
        self,
        world: ConsumerWorld,
        member_id: str,
        topics: list[str],
        pattern: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.world = world
        self.member_id = member_id
        self.topics = topics
        self.pattern = pattern
        self.instance = instance
        self.assignor = assignor
        self.epoch = 0
        self.has: set[Partition] = set()
        self._waiting: ConsumerGroupHeartbeatResponse | Deferred[ConsumerGroupHeartbeatResponse] | None = None
        self._says_all = True
        self._said: set[Partition] | None = None

    def beat(self, **fields: Any) -> None:
        """Receive a waiting response, or send a heartbeat unless one is under way."""
        self.hear()
        if self._waiting is not None:
            return
        if self._says_all:
            fields |= {
                "rebalance_timeout_ms": REBALANCE_MS,
                "subscribed_topic_names": self.topics,
                "subscribed_topic_regex": self.pattern,
                "server_assignor": self.assignor,
            }
        if self._says_all or self.has != self._said:
            fields["topic_partitions"] = self._owned()
        self._said, self._says_all = set(self.has), False
        self._waiting = self.world.send(self.member_id, self.epoch, instance_id=self.instance, **fields)
        self.hear()

    def lose(self) -> None:
        """Lose the response under way, and send all fields with the next heartbeat."""
        self._waiting, self._says_all = None, True

    def subscribe(self, topics: list[str]) -> None:
        """Subscribe to other topics with the next heartbeat."""
        self.topics, self._says_all = topics, True

    def leave(self, epoch: int) -> None:
        """Stop reading, and leave the group."""
        self.has = set()
        self.world.send(self.member_id, epoch, instance_id=self.instance)

    def hear(self) -> None:
        """Obey a response, if there is one."""
        waiting = self._waiting
        if waiting is None or (
            isinstance(waiting, Deferred) and isinstance(getattr(waiting, "result", waiting), Deferred)
        ):
            return
        self._waiting = None
        answer = take_response(waiting)
        if answer.error_code in LATER:
            self._says_all = True
        elif answer.error_code:
            assert answer.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID), answer
            self._begin_anew()
        else:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                parts = answer.assignment.topic_partitions
                self.has = {(part.topic_id, number) for part in parts for number in part.partitions}

    def _begin_anew(self) -> None:
        self.epoch, self.has, self._says_all = 0, set(), True

    def _owned(self) -> list[TopicPartitions]:
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, number in sorted(self.has):
            by_topic.setdefault(topic_id, []).append(number)
        return [TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in by_topic.items()]


class ClassicMember:
    """A member of the classic protocol that keeps its partitions while it rejoins."""

    def __init__(self, world: ConsumerWorld, topics: list[str]) -> None:
        self.world = world
        self.topics = topics
        self.member_id = ""
        self.generation = -1
        self.has: set[Partition] = set()

    def beat(self, **fields: Any) -> None:
        """Send a heartbeat and obey the response; do nothing while the log is slow."""
        group = self.world.coordinator._registry.by_id.get(GROUP)
        if self.world.log.hold or group is None or group.is_empty:
            return
        code = self.world.heartbeat(self.member_id, self.generation) if self.member_id else ErrorCode.UNKNOWN_MEMBER_ID
        if code and code not in LATER:
            self._join(knows_nothing=code != ErrorCode.REBALANCE_IN_PROGRESS)

    def _join(self, *, knows_nothing: bool) -> None:
        if knows_nothing:
            self.member_id, self.has = "", set()
        owned: dict[str, set[int]] = {}
        for topic_id, number in self.has:
            owned.setdefault(self.world.name_of(topic_id), set()).add(number)
        metadata = [("range", write_topics(*self.topics, **owned))]
        answer = take_response(self.world.join(self.member_id, protocols=metadata, version=3))
        if answer.error_code:
            assert answer.error_code in LATER, answer
            return
        self.member_id, self.generation = answer.member_id, answer.generation_id
        synced = take_response(self.world.sync(self.member_id, self.generation))
        if not synced.error_code:
            topics = self.world.metadata.image.topics
            self.has = {
                (topics[name].topic_id, number)
                for name, some in read_partitions(synced.assignment).items()
                for number in some
            }

    def leave(self, epoch: int) -> None:
        """Stop reading, and leave the group."""
        self.has = set()
        if self.member_id and not self.world.log.hold:
            self.world.leave(self.member_id)
