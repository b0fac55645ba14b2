"""The consumer group protocol (KIP-848): the coordinator assigns, and heartbeats carry everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from kafkacompat.history.events import HistoryPartition
from kafkacompat.wire.apis.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.simulation.clients.coordinators import GROUP, Coordinator
from tests.simulation.clients.errors import RETRIABLE
from tests.simulation.clients.group_offsets import GroupMember
from tests.simulation.clients.process import ClientProcess
from tests.simulation.clients.settings import MemberSettings

JOIN_EPOCH, LEAVE_EPOCH = 0, -1
FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND})
"""After these a member joins again. The Java client ends when the group is gone, and its application starts it again."""


class ConsumerMembership:
    """Implements `Membership`."""

    def __init__(self, process: ClientProcess, settings: MemberSettings, topics: Sequence[str]) -> None:
        self.coordinator = Coordinator(process, GROUP, settings.group)
        self.on_revoked: Callable[[Sequence[HistoryPartition]], None] = lambda places: None
        self.on_assigned: Callable[[Sequence[HistoryPartition]], None] = lambda places: None
        self._process = process
        self._settings = settings
        self._topics = list(topics)
        self._member_id = str(UUID(int=process.rng.getrandbits(128)))
        self._epoch = JOIN_EPOCH
        self._owned: list[HistoryPartition] = []
        self._needs_report = True
        self._interval_s = settings.heartbeat_interval_s
        self._is_over = False

    @property
    def member(self) -> GroupMember:
        """See Membership."""
        return GroupMember(self._settings.group, self._member_id, self._epoch)

    async def stay(self) -> None:
        """See Membership."""
        backoff = self._process.make_backoff()
        cluster = self._process.cluster
        cluster.watch(self._topics)
        while not self._is_over:
            try:
                response = await self.coordinator.try_once(self._build_heartbeat())
                if self._is_over:
                    return
                backoff.reset()
                self._needs_report = False
                await self._take(response)
            except KafkaError as problem:
                self._note_error(problem)
                await self._process.sleep(backoff.next_s())
            else:
                # A changed assignment is reported at once.
                await self._process.sleep(0 if self._needs_report else self._interval_s)

    def _note_error(self, problem: KafkaError) -> None:
        """Report everything with the next heartbeat; after a fenced one join again."""
        self._needs_report = True
        if problem.code in FENCED:
            self._epoch = JOIN_EPOCH
            self._revoke(self._owned)
        elif problem.code not in RETRIABLE:
            raise problem

    def _build_heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group, member_id=self._member_id, member_epoch=self._epoch
        )
        if self._needs_report:
            request.rebalance_timeout_ms = int(self._settings.rebalance_timeout_s * 1000)
            request.subscribed_topic_names = self._topics
            request.topic_partitions = self._describe_owned() if self._epoch else []
        return request

    def _describe_owned(self) -> list[TopicPartitions]:
        topics: dict[str, TopicPartitions] = {}
        for place in self._owned:
            topic_id = self._process.cluster.topic_id(place.topic)
            topics.setdefault(place.topic, TopicPartitions(topic_id=topic_id, partitions=[])).partitions.append(
                place.partition
            )
        return list(topics.values())

    async def _take(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Take over the epoch and a new assignment: first let go of partitions, then take the new ones."""
        self._epoch = response.member_epoch
        self._interval_s = response.heartbeat_interval_ms / 1000
        if response.assignment is None:
            return
        target = await self._name_partitions(response.assignment)
        if self._is_over or target is None:
            return
        revoked = [place for place in self._owned if place not in target]
        added = [place for place in target if place not in self._owned]
        self._needs_report = bool(revoked or added)
        self._revoke(revoked)
        self._owned += added
        if added:
            self.on_assigned(added)

    async def _name_partitions(self, assignment: Assignment) -> list[HistoryPartition] | None:
        """Return the assigned partitions by name; wait for metadata that has the topics. None if the stay ends before."""
        cluster = self._process.cluster
        while not self._is_over:
            names = {cluster.topic_id(topic): topic for topic in self._topics}
            if all(topic.topic_id in names for topic in assignment.topic_partitions):
                return [
                    HistoryPartition(names[topic.topic_id], partition)
                    for topic in assignment.topic_partitions
                    for partition in topic.partitions
                ]
            await cluster.updated()
        return None

    async def leave(self) -> None:
        """See Membership."""
        self.abandon()
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group, member_id=self._member_id, member_epoch=LEAVE_EPOCH
        )
        try:
            await self.coordinator.try_once(request)
        except KafkaError:
            return  # The session ends by its timeout.

    def abandon(self) -> None:
        """See Membership."""
        self._is_over = True
        self._revoke(self._owned)

    def _revoke(self, places: Sequence[HistoryPartition]) -> None:
        revoked = list(places)
        self._owned = [place for place in self._owned if place not in revoked]
        if revoked:
            self.on_revoked(revoked)
