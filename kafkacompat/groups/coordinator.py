"""The group coordinator: the methods that handlers call, and the elections of its partitions.

Each group belongs to one partition of `__consumer_offsets`; the leader of the partition coordinates the group. `classic` and
`consumer` hold the two kinds of groups, and `kinds` finds the service of a group. For both kinds, `commits` stores offsets,
`administration` lists and deletes groups, `expiration` deletes old offsets, and `loader` reads the groups from the log.
Everything runs on the reactor thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from twisted.internet.defer import Deferred, succeed

from kafkacompat.config.instances import Instance
from kafkacompat.coordination.coordinator_log import CoordinatorLog, LogProducer
from kafkacompat.coordination.leadership import Leadership
from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.outbox import Outbox
from kafkacompat.coordination.shard import Shard
from kafkacompat.coordination.writer import ShardWriter
from kafkacompat.groups.administration import DeleteAnswer, GroupAdministration, OffsetDeleteAnswer
from kafkacompat.groups.any_group import AnyGroup, SenderIdentity
from kafkacompat.groups.classic.service import ClassicGroups
from kafkacompat.groups.classic_protocol import (
    JoinAnswer,
    Joiner,
    LeaveAnswer,
    SyncAnswer,
    build_join_refusal,
    build_sync_refusal,
)
from kafkacompat.groups.commits import CommitAnswer, Commits, FetchAnswer, OffsetToCommit
from kafkacompat.groups.consumer.heartbeats import HeartbeatAnswer
from kafkacompat.groups.consumer.progress import ClientIdentity
from kafkacompat.groups.consumer.service import ConsumerGroups
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.groups.conversion import GroupConversion
from kafkacompat.groups.deletion import GroupDeletion
from kafkacompat.groups.expiration import OffsetExpiration
from kafkacompat.groups.kinds import GroupKinds
from kafkacompat.groups.loader import GroupLoader
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.metadata.instance_limits import FindInstance, find_no_instance
from kafkacompat.timers import Clock, make_cooperator
from kafkacompat.wire.apis.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from kafkacompat.wire.apis.consumer_group_describe import Member
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.apis.describe_groups import DescribedGroup
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.apis.list_groups import ListedGroup
from kafkacompat.wire.apis.sync_group import SyncGroupRequest
from kafkacompat.wire.errors import ErrorCode


class GroupCoordinator:
    """Coordinates the groups of the offsets partitions that this broker leads.

    ``ensure_offsets_topic`` creates `__consumer_offsets` unless it exists, and fires when its partitions have leaders. A method
    that may have to wait returns the value or a Deferred of it; these Deferreds do not fail. ``find_instance`` returns the instance
    of a group by its id, whose limit of groups applies.
    """

    def __init__(
        self,
        clock: Clock,
        settings: GroupSettings,
        offsets_log: CoordinatorLog,
        ensure_offsets_topic: Callable[[], Deferred[None]],
        random_bytes: Callable[[int], bytes] = os.urandom,
        *,
        metadata: ImageHolder,
        consumer_settings: ConsumerGroupSettings,
        find_instance: FindInstance = find_no_instance,
    ) -> None:
        self.ensure_offsets_topic = ensure_offsets_topic
        self._clock = clock
        self._settings = settings
        self._log = offsets_log
        self._outbox = Outbox()
        self._registry = GroupRegistry(offsets_log, find_instance)
        self._reloading: dict[int, ShardWriter] = {}
        self._budget = MemoryBudget(settings.member_metadata_max_bytes)
        turns = make_cooperator(clock)
        self._leadership = Leadership(
            self._registry, offsets_log, turns, lambda shard: GroupLoader(shard, self._budget), self._on_loaded
        )
        classic = ClassicGroups(clock, settings, self._registry, self._outbox, self._budget, random_bytes)
        consumer = ConsumerGroups(
            clock,
            consumer_settings,
            self._registry,
            self._outbox,
            metadata,
            self._budget,
            GroupConversion(consumer_settings, metadata, classic),
            turns,
            random_bytes,
            self._reload,
            self._join_existing,
        )
        self._kinds = GroupKinds(classic, consumer)
        self._commits = Commits(clock, settings, self._registry, self._kinds)
        deletion = GroupDeletion(settings, self._registry, self._forget)
        self._administration = GroupAdministration(self._registry, deletion)
        self._expiration = OffsetExpiration(clock, settings, self._registry, deletion, turns)

    @property
    def groups(self) -> Mapping[str, AnyGroup]:
        """The groups that this broker coordinates, by id."""
        return self._registry.by_id

    def count_groups_of(self, instance: Instance) -> int:
        """Return how many groups of an instance this broker coordinates."""
        return self._registry.count_groups_of(instance)

    # Elections

    def start(self) -> None:
        """Start to look for old offsets regularly."""
        self._expiration.start()

    def stop(self) -> None:
        """Resign all partitions, so that waiting clients look for the coordinator again, and stop all timers."""
        self._registry.is_stopped = True
        self._expiration.stop()
        self._reloading.clear()
        for partition in list(self._registry.shards):
            self.on_resignation(partition)

    def on_election(self, partition: int) -> Deferred[None]:
        """Load the groups of a partition of the offsets topic that this broker leads from now on; fires when they are ready.

        An empty partition is ready at once. A partition that this broker leads already stays as it is, also while it waits to be
        loaded again.
        """
        return succeed(None) if partition in self._reloading else self._load(partition)

    def _load(self, partition: int) -> Deferred[None]:
        settings = self._settings
        writer = ShardWriter(
            partition,
            self._log,
            self._clock,
            timeout_ms=settings.offsets_commit_timeout_ms,
            codec=settings.offsets_topic_compression_codec,
        )
        return self._leadership.load_shard(Shard(partition, writer))

    def _on_loaded(self, shard: Shard, loader: GroupLoader) -> None:
        self._registry.transactions[shard.partition] = loader.transactions
        self._outbox.run(self._take_over, loader)

    def _forget(self, group: AnyGroup, code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """Remove a group from the registry; requests that wait for it are answered with *code*."""
        self._kinds.service_of(group).forget(group, code)

    def _take_over(self, loader: GroupLoader) -> None:
        self._registry.groups.add_all(loader.groups)
        for group in loader.groups.values():
            self._kinds.service_of(group).take_over(group)

    def _reload(self, partition: int) -> None:
        """Load a partition from the log again: memory and log differ."""
        writer = self._registry.shards[partition].writer
        self.on_resignation(partition)
        self._reloading[partition] = writer
        self._load_after_writes(writer, partition)

    def _load_after_writes(self, writer: ShardWriter, partition: int) -> None:
        """Load a partition once its log has accepted or rejected every write under way."""
        waiting = writer.wait_for_writes()
        if waiting is not None:
            waiting.addCallback(lambda _: self._load_after_writes(writer, partition))
        elif self._reloading.get(partition) is writer:
            del self._reloading[partition]
            self._load(partition)

    def on_resignation(self, partition: int) -> None:
        """Forget the groups of a partition that this broker no longer leads; waiting requests get NOT_COORDINATOR."""
        self._reloading.pop(partition, None)
        shard = self._leadership.resign_shard(partition)
        self._registry.transactions.pop(partition, None)
        for group in self._registry.in_shard(shard) if shard is not None else ():
            self._outbox.run(self._forget, group, ErrorCode.NOT_COORDINATOR)

    def on_topics_deleted(self, topics: Mapping[str, bytes]) -> Deferred[None]:
        """Delete the offsets of deleted *topics*, topic ids by name; fires when all groups are checked."""
        return self._expiration.delete_offsets_of_topics(topics)

    def partition_for(self, group_id: str) -> int:
        """Return the partition of the offsets topic that a group belongs to."""
        return self._registry.partition_for(group_id)

    # For members

    def join(self, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        """JoinGroup. The caller fills in the rebalance timeout for versions without one."""
        return self._outbox.run(self._join, request, joiner)

    def _join(self, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        return self._refuse_join(request) or self._join_existing(request, joiner)

    def _refuse_join(self, request: JoinGroupRequest) -> JoinGroupResponse | None:
        """Return the response to a request that no group of either kind accepts."""
        if not request.group_id:
            return build_join_refusal(ErrorCode.INVALID_GROUP_ID, request.member_id)
        settings, timeout_ms = self._settings, request.session_timeout_ms
        if not settings.group_min_session_timeout_ms <= timeout_ms <= settings.group_max_session_timeout_ms:
            return build_join_refusal(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
        return None

    def _join_existing(self, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        group = self._registry.find(request.group_id)
        if isinstance(group, AnyGroup):
            return self._kinds.service_of(group).join(group, request, joiner)
        refusal = group or self._registry.check_new(request.group_id)
        return build_join_refusal(refusal) if refusal else self._kinds.classic.join_new_group(request, joiner)

    def sync(self, request: SyncGroupRequest) -> SyncAnswer:
        """SyncGroup."""
        group = self._find(request.group_id)
        if isinstance(group, ErrorCode):
            return build_sync_refusal(group)
        return self._outbox.run(self._kinds.service_of(group).sync, group, request)

    def heartbeat(self, group_id: str, identity: SenderIdentity) -> ErrorCode:
        """Heartbeat."""
        group = self._find(group_id)
        if isinstance(group, ErrorCode):
            # A client that sends a heartbeat while its group is being loaded was a member a moment ago.
            return ErrorCode.NONE if group is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else group
        return self._outbox.run(self._kinds.service_of(group).heartbeat, group, identity)

    def leave(self, group_id: str, members: Sequence[MemberIdentity]) -> LeaveAnswer | ErrorCode:
        """LeaveGroup: one code for each member, or one for the whole request."""
        group = self._find(group_id)
        if isinstance(group, ErrorCode):
            return [group] * len(members) if group is ErrorCode.UNKNOWN_MEMBER_ID else group
        return self._outbox.run(self._kinds.service_of(group).leave, group, members)

    def _find(self, group_id: str) -> AnyGroup | ErrorCode:
        """Return the group that the members of a request are in, or the error for the client."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self._registry.find(group_id)
        return group if isinstance(group, AnyGroup) else group or ErrorCode.UNKNOWN_MEMBER_ID

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: ClientIdentity, *, needs_member_id: bool
    ) -> HeartbeatAnswer:
        """ConsumerGroupHeartbeat; with ``needs_member_id`` the member has to choose its own id."""
        return self._kinds.consumer.consumer_heartbeat(request, client, needs_member_id=needs_member_id)

    # For offsets

    def commit(
        self, group_id: str, identity: SenderIdentity, offsets: Sequence[OffsetToCommit], retention_time_ms: int = -1
    ) -> CommitAnswer:
        """OffsetCommit: one code for each offset."""
        return self._outbox.run(self._commits.commit, group_id, identity, offsets, retention_time_ms)

    def commit_in_transaction(
        self, group_id: str, identity: SenderIdentity, producer: LogProducer, offsets: Sequence[OffsetToCommit]
    ) -> CommitAnswer:
        """TxnOffsetCommit: one code for each offset. The offsets become visible when the transaction is committed."""
        return self._outbox.run(self._commits.commit_in_transaction, group_id, identity, producer, offsets)

    def end_transaction(
        self, partition: int, producer_id: int, is_commit: bool, append: Callable[[], object]
    ) -> Deferred[ErrorCode]:
        """Write a transaction's marker to a partition of the offsets topic by *append*, in order with all other writes.

        Fires with the log's own code, and does not fail. Raises KafkaError NOT_LEADER_OR_FOLLOWER if this broker does not lead
        the partition, or is still loading it.
        """
        return self._outbox.run(self._commits.end_transaction, partition, producer_id, is_commit, append)

    def fetch_offsets(self, group_id: str, member_id: str | None = None, member_epoch: int = -1) -> FetchAnswer:
        """OffsetFetch for one group. The caller must not keep the offsets: later commits change them."""
        return self._commits.fetch(group_id, member_id, member_epoch)

    # For administrators

    def list(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> ErrorCode | list[ListedGroup]:
        """ListGroups."""
        listed = self.list_in_steps(states, types)
        return listed if isinstance(listed, ErrorCode) else [group for group in listed if group is not None]

    def list_in_steps(self, states: Iterable[str], types: Iterable[str]) -> ErrorCode | Iterator[ListedGroup | None]:
        """ListGroups, where each group that is left out yields None: there may be a hundred thousand."""
        return self._administration.list(states, types)

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups for one group; an unknown group has the code GROUP_ID_NOT_FOUND."""
        return self._kinds.classic.describe(group_id)

    def describe_consumer_group(self, group_id: str) -> tuple[DescribedConsumerGroup, Iterator[Member]]:
        """ConsumerGroupDescribe for one group without its members, and these one by one; GROUP_ID_NOT_FOUND if it is unknown."""
        return self._kinds.consumer.describe(group_id)

    def delete(self, group_id: str) -> DeleteAnswer:
        """DeleteGroups for one group."""
        return self._outbox.run(self._administration.delete, group_id)

    def delete_offsets(self, group_id: str, partitions: Sequence[tuple[str, int]]) -> OffsetDeleteAnswer:
        """OffsetDelete: one code for each partition, or one for the whole request."""
        return self._outbox.run(self._administration.delete_offsets, group_id, partitions)
