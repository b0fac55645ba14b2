"""The classic group protocol with eager rebalances and the range assignor, as the Java client's AbstractCoordinator has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkacompat.history.events import HistoryPartition
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_topics,
    write_assignment,
    write_subscription,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.simulation.clients.coordinators import GROUP, Coordinator
from tests.simulation.clients.errors import RETRIABLE
from tests.simulation.clients.group_offsets import GroupMember
from tests.simulation.clients.process import ClientProcess
from tests.simulation.clients.settings import MemberSettings

PROTOCOL_TYPE, ASSIGNOR = "consumer", "range"
SUBSCRIPTION_VERSION = 1
NO_GENERATION = -1
REJOIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
FORGET_MEMBER = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
JOIN_GRACE_S = 5.0
"""A response to JoinGroup may take this much longer than the rebalance timeout."""


class ClassicMembership:
    """Implements `Membership`."""

    def __init__(self, process: ClientProcess, settings: MemberSettings, topics: Sequence[str]) -> None:
        self.coordinator = Coordinator(process, GROUP, settings.group)
        self.on_revoked: Callable[[Sequence[HistoryPartition]], None] = lambda places: None
        self.on_assigned: Callable[[Sequence[HistoryPartition]], None] = lambda places: None
        self._process = process
        self._settings = settings
        self._topics = list(topics)
        self._member_id = ""
        self._generation = NO_GENERATION
        self._assigned: list[HistoryPartition] = []
        self._divided: dict[str, int] = {}
        """As the leader: the numbers of partitions that this generation divided, by topic."""
        self._is_over = False

    @property
    def member(self) -> GroupMember:
        """See Membership."""
        return GroupMember(self._settings.group, self._member_id, self._generation)

    async def stay(self) -> None:
        """See Membership."""
        backoff = self._process.make_backoff()
        self._process.cluster.watch(self._topics)
        while not self._is_over:
            try:
                await self._join()
                backoff.reset()
                await self._send_heartbeats()
            except KafkaError as problem:
                if problem.code not in RETRIABLE | REJOIN | {ErrorCode.MEMBER_ID_REQUIRED}:
                    raise
                if problem.code in FORGET_MEMBER:
                    self._member_id, self._generation = "", NO_GENERATION
                if problem.code not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED):
                    await self._process.sleep(backoff.next_s())
            self._revoke()

    async def leave(self) -> None:
        """See Membership."""
        self.abandon()
        if self._member_id:
            members = [MemberIdentity(member_id=self._member_id, reason="the simulation wants it")]
            request = LeaveGroupRequest(group_id=self._settings.group, members=members)
            try:
                await self.coordinator.try_once(request)
            except KafkaError:
                return  # The session ends by its timeout.

    def abandon(self) -> None:
        """See Membership."""
        self._is_over = True
        self._revoke()

    def _revoke(self) -> None:
        revoked, self._assigned = self._assigned, []
        if revoked:
            self.on_revoked(revoked)

    # A generation

    async def _join(self) -> None:
        """Join a generation, and get its assignment."""
        settings = self._settings
        subscription = write_subscription(ConsumerProtocolSubscription(topics=self._topics), SUBSCRIPTION_VERSION)
        request = JoinGroupRequest(
            group_id=settings.group,
            session_timeout_ms=int(settings.session_timeout_s * 1000),
            rebalance_timeout_ms=int(settings.rebalance_timeout_s * 1000),
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=ASSIGNOR, metadata=subscription)],
        )
        longer_s = settings.rebalance_timeout_s + JOIN_GRACE_S
        joined = await self.coordinator.try_once(request, self._note_member_id, longer_s=longer_s)
        self._generation = joined.generation_id
        is_leader = joined.leader == joined.member_id
        self._divided = {}
        sync = SyncGroupRequest(
            group_id=settings.group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=await self._assign(joined) if is_leader and not joined.skip_assignment else [],
        )
        synced = await self.coordinator.try_once(sync, longer_s=settings.rebalance_timeout_s)
        if self._is_over:
            return
        assignment = read_assignment(synced.assignment) if synced.assignment else ConsumerProtocolAssignment()
        self._assigned = [
            HistoryPartition(topic.topic, partition)
            for topic in assignment.assigned_partitions
            for partition in topic.partitions
        ]
        self._process.cluster.watch(topic.topic for topic in assignment.assigned_partitions)
        self.on_assigned(list(self._assigned))

    def _note_member_id(self, response: JoinGroupResponse) -> int:
        if response.error_code in (0, ErrorCode.MEMBER_ID_REQUIRED):
            self._member_id = response.member_id
        return response.error_code

    async def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Divide the partitions of each topic into ranges, one for each member that subscribes to it."""
        shares: dict[str, list[TopicPartition]] = {member.member_id: [] for member in joined.members}
        subscribers: dict[str, list[str]] = {}
        for member in sorted(joined.members, key=lambda member: member.member_id):
            for topic in read_topics(member.metadata):
                subscribers.setdefault(topic, []).append(member.member_id)
        cluster = self._process.cluster
        cluster.watch(subscribers)
        if not all(cluster.partitions(topic) for topic in subscribers):
            await cluster.updated()
        self._divided = {topic: len(cluster.partitions(topic)) for topic in subscribers}
        for topic, member_ids in subscribers.items():
            partitions = [place.partition for place in cluster.partitions(topic)]
            share, left = divmod(len(partitions), len(member_ids))
            for number, member_id in enumerate(member_ids):
                count = share + (number < left)
                taken, partitions = partitions[:count], partitions[count:]
                if taken:
                    shares[member_id].append(TopicPartition(topic=topic, partitions=taken))
        return [
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=write_assignment(
                    ConsumerProtocolAssignment(assigned_partitions=taken), SUBSCRIPTION_VERSION
                ),
            )
            for member_id, taken in shares.items()
        ]

    async def _send_heartbeats(self) -> None:
        """Send heartbeats until the group needs the member to join again, which raises KafkaError."""
        last_success = self._process.clock.seconds()
        while not self._is_over:
            await self._process.sleep(self._settings.heartbeat_interval_s)
            if self._is_over:
                return
            self._check_partitions()
            request = HeartbeatRequest(
                group_id=self._settings.group, generation_id=self._generation, member_id=self._member_id
            )
            try:
                await self.coordinator.try_once(request)
                last_success = self._process.clock.seconds()
            except KafkaError as problem:
                since_s = self._process.clock.seconds() - last_success
                if problem.code not in RETRIABLE or since_s > self._settings.session_timeout_s:
                    raise

    def _check_partitions(self) -> None:
        """Raise KafkaError REBALANCE_IN_PROGRESS if the leader knows of other partitions than it has divided."""
        cluster = self._process.cluster
        if any(len(cluster.partitions(topic)) != count for topic, count in self._divided.items()):
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "the topics have other partitions")
