"""This broker's replicas under the controller's orders: LeaderAndIsr and StopReplica.

Orders are carried out one request after the other. A LeaderAndIsr is answered when each partition that this broker is to lead
accepts writes, and each that it is to follow is being fetched.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from twisted.internet.defer import Deferred, DeferredLock, gatherResults

from kafkacompat.cluster.losses import ReplicaLosses, name_some
from kafkacompat.cluster.metadata_update import LEADER_DURING_DELETE
from kafkacompat.cluster.order_checks import find_objection
from kafkacompat.cluster.orders import LeaderAndIsrType, build_partition_image
from kafkacompat.metadata.image import NO_LEADER, PartitionImage, TopicImage
from kafkacompat.metadata.store import StoreError
from kafkacompat.partitions.discovery import list_strays
from kafkacompat.storage.directory.meta_properties import LogDirectoryError
from kafkacompat.timers import Clock, steady_ms, yield_in_turns
from kafkacompat.wire.apis.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from kafkacompat.wire.apis.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from kafkacompat.partitions.cluster_view import ClusterView
    from kafkacompat.partitions.discovery import Stray
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.partitions.replica_manager import ReplicaManager

log = logging.getLogger(__name__)

NO_EPOCH = -1


class Following(Protocol):
    """Fetches partitions from their leaders."""

    def follow(self, partition: Partition, leader_id: int, leader_epoch: int) -> None:
        """Fetch a partition from its leader in that epoch."""

    def stop(self, topic: str, index: int) -> Deferred[None]:
        """Fetch a partition no longer; fires when nothing changes its log any more."""


class RoleReceiver(Protocol):
    """Learns which partitions this broker leads; the coordinators do."""

    def lead(self, topic: str, partition: PartitionImage) -> None:
        """This broker leads the partition in that epoch."""

    def resign(self, topic: str, index: int) -> None:
        """This broker does not lead the partition any more."""

    def forget(self, topic: TopicImage) -> None:
        """A topic is deleted."""


ListAssigned: TypeAlias = "Callable[[Collection[str]], Coroutine[Deferred[Any], Any, set[tuple[str, bytes, int]]]]"


class _Assignment(NamedTuple):
    topic: str
    topic_id: bytes
    image: PartitionImage
    is_new: bool


class AssignedReplicas:
    """Carries out the controller's orders on the partitions of this broker.

    ``read_configs`` reads the configurations of topics before they are opened. ``list_assigned`` looks up in ZooKeeper which
    partitions of topics are this broker's: name, topic id and index.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        view: ClusterView,
        following: Following,
        roles: RoleReceiver,
        read_configs: Callable[[Iterable[str]], Deferred[None]],
        list_assigned: ListAssigned,
        losses: ReplicaLosses,
        clock: Clock,
    ) -> None:
        self._replicas = replicas
        self._view = view
        self._following = following
        self._roles = roles
        self._read_configs = read_configs
        self._list_assigned = list_assigned
        self._losses = losses
        self._clock = clock
        self._lock = DeferredLock()
        self._has_all = False
        self._closed = False

    def close(self) -> Deferred[None]:
        """Carry out no more orders; fires when none is being carried out."""

        def close() -> None:
            self._closed = True

        return self._lock.run(close)

    # LeaderAndIsr

    def apply(self, request: LeaderAndIsrRequest) -> Deferred[LeaderAndIsrResponse]:
        """Lead or follow the partitions of a request."""
        return self._lock.run(lambda: Deferred.fromCoroutine(self._apply(request)))

    async def _apply(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        if self._closed:
            return LeaderAndIsrResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
        assignments, refused = self._check_assignments(_list_assignments(request))
        assignments, lost = self._take_out_lost(assignments)
        await self._open_missing(assignments)
        await self._stop_following(assignments)
        codes = [(entry, await self._assign(entry)) async for entry in yield_in_turns(self._clock, assignments)]
        if request.type == LeaderAndIsrType.ALL and not self._has_all:
            self._has_all = True
            await self._set_strays_aside({(entry.topic, entry.image.partition) for entry in [*assignments, *lost]})
            if not lost:
                await self._losses.confirm()
        return _build_response([*codes, *refused, *((entry, ErrorCode.KAFKA_STORAGE_ERROR) for entry in lost)])

    def _take_out_lost(self, entries: Iterable[_Assignment]) -> tuple[list[_Assignment], list[_Assignment]]:
        """Return the assignments to carry out, and those of in-sync replicas that this broker has lost."""
        kept: list[_Assignment] = []
        lost: list[_Assignment] = []
        for entry in entries:
            is_lost = self._losses.is_lost(entry.topic, entry.image, is_new=entry.is_new)
            (lost if is_lost else kept).append(entry)
        if lost:
            names = [f"{entry.topic}-{entry.image.partition}" for entry in lost]
            log.error("Refused the roles of %d partitions that this broker has lost: %s", len(lost), name_some(names))
        return kept, lost

    def _check_assignments(
        self, entries: Iterable[_Assignment]
    ) -> tuple[list[_Assignment], list[tuple[_Assignment, ErrorCode]]]:
        """Return the assignments to carry out, and the others with their errors."""
        accepted: list[_Assignment] = []
        refused = []
        holders: dict[bytes, str] = {}
        for entry in entries:
            code = find_objection(entry.topic, entry.image)
            if not code and entry.topic_id != ZERO_UUID:
                holder = self._replicas.find_name(entry.topic_id, entry.image.partition)
                if entry.topic != holders.setdefault(entry.topic_id, holder or entry.topic):
                    code = ErrorCode.INCONSISTENT_TOPIC_ID
            if code:
                log.error("Refused the assignment of %.300r-%d: %s", entry.topic, entry.image.partition, code.name)
                refused.append((entry, code))
            else:
                accepted.append(entry)
        return accepted, refused

    async def _open_missing(self, assignments: list[_Assignment]) -> None:
        """Open or create the logs that are not open; one of an earlier topic of the same name goes first."""
        missing: dict[tuple[str, bytes], list[PartitionImage]] = {}
        for entry in assignments:
            try:
                partition = self._find(entry.topic, entry.image.partition)
            except KafkaError:
                continue
            if partition is not None and partition.log.topic_id == ZERO_UUID != entry.topic_id:
                # An old tool or Apache Kafka before 2.8 wrote the topic, and the controller has given it an id since.
                self._replicas.take_topic_id(partition, entry.topic_id)
            if partition is not None and entry.topic_id not in (ZERO_UUID, partition.log.topic_id):
                log.warning("%r belongs to a topic that was deleted, and is set aside", partition)
                await self._try_to_set_aside(partition)
                partition = None
            if partition is None:
                missing.setdefault((entry.topic, entry.topic_id), []).append(entry.image)
        if missing:
            try:
                await self._read_configs([name for name, _ in missing])
            except StoreError as problem:
                # They are read again once ZooKeeper is there.
                log.warning("Opening partitions without their topics' newest configurations: %s", problem)
        for (name, topic_id), images in missing.items():
            await self._replicas.open_partitions(TopicImage(name, topic_id, tuple(images)))

    def _find(self, topic: str, index: int) -> Partition | None:
        """Return a partition, None if this broker does not have it; raises KafkaError KAFKA_STORAGE_ERROR."""
        try:
            return self._replicas.find(topic, index)
        except KafkaError as problem:
            if problem.code is ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            return None

    def find_topic_id(self, topic: TopicImage) -> bytes:
        """Return the id that this broker's replicas of a topic have; zeros if it has none."""
        for image in topic.partitions:
            with suppress(KafkaError):
                return self._replicas.find(topic.name, image.partition).log.topic_id
        return ZERO_UUID

    async def _stop_following(self, assignments: list[_Assignment]) -> None:
        """End the fetches of the partitions that this broker is to lead, all at once: each may wait for its disk."""
        await gatherResults(
            [
                self._following.stop(entry.topic, entry.image.partition)
                for entry in assignments
                if entry.image.leader == self._view.node_id and not self._is_older(entry)
            ]
        )

    def _is_older(self, entry: _Assignment) -> bool:
        try:
            partition = self._replicas.find(entry.topic, entry.image.partition)
        except KafkaError:
            return False
        return entry.image.leader_epoch < partition.leader_epoch

    async def _assign(self, entry: _Assignment) -> ErrorCode:
        """Give one partition its role; return the code of the answer."""
        image = entry.image
        try:
            partition = self._replicas.find(entry.topic, image.partition)
        except KafkaError as problem:
            return problem.code
        if image.leader_epoch < partition.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        partition.note_reassignment(is_added=self._view.node_id in image.adding_replicas)
        if image.leader == self._view.node_id:
            partition.become_leader(
                self._view,
                image.leader_epoch,
                image.replicas,
                image.in_sync_replicas,
                image.partition_epoch,
                steady_ms(self._clock),
            )
            self._roles.lead(entry.topic, image)
            return ErrorCode.NONE
        self._roles.resign(entry.topic, image.partition)
        partition.become_follower(image.leader, image.leader_epoch, image.partition_epoch)
        if image.leader == NO_LEADER:
            await self._following.stop(entry.topic, image.partition)
        else:
            self._following.follow(partition, image.leader, image.leader_epoch)
        return ErrorCode.NONE

    async def _set_strays_aside(self, assigned: set[tuple[str, int]]) -> None:
        """Stop serving the partitions that the controller did not name at this broker's start: their topics are gone.

        ZooKeeper has to confirm that, so that no error of a controller can take away a replica.
        """
        unassigned = [partition for partition in self._replicas if (partition.topic, partition.index) not in assigned]
        try:
            directories = self._replicas.directories
            # A folder of a partition that is elsewhere may be the end of a move that goes on meanwhile.
            strays = [stray for stray in await list_strays(directories) if directories.find_home(stray.name) is None]
            topics = {partition.topic for partition in unassigned} | {stray.name[0] for stray in strays}
            owned = await self._list_assigned(topics) if topics else set()
        except (StoreError, OSError, LogDirectoryError) as problem:
            log.warning("The partitions that the controller did not name stay where they are: %s", problem)
            return
        for partition in unassigned:
            if _is_among(owned, partition):
                log.error("The controller did not name %r, which is this broker's by ZooKeeper", partition)
            else:
                log.warning("%r belongs to no topic of the cluster, and is set aside", partition)
                await self._try_to_set_aside(partition)
        owned_names = {(topic, index) for topic, _, index in owned}
        for stray in strays:
            if stray.name not in owned_names:
                await self._try_to_set_folder_aside(stray)

    async def _try_to_set_folder_aside(self, stray: Stray) -> None:
        try:
            await stray.set_aside()
        except (OSError, LogDirectoryError) as problem:
            log.error("Cannot set the folder of %s-%d aside: %s", *stray.name, problem)

    # StopReplica

    def stop(self, request: StopReplicaRequest) -> Deferred[StopReplicaResponse]:
        """Stop leading and following the partitions of a request, and delete those that it marks."""
        return self._lock.run(lambda: Deferred.fromCoroutine(self._stop(request)))

    async def _stop(self, request: StopReplicaRequest) -> StopReplicaResponse:
        if self._closed:
            return StopReplicaResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
        errors = []
        for topic, index, leader_epoch, delete in _list_stops(request):
            code = await self._stop_one(topic, index, leader_epoch, delete)
            errors.append(StopReplicaPartitionError(topic_name=topic, partition_index=index, error_code=code))
        return StopReplicaResponse(partition_errors=errors)

    async def _stop_one(self, topic: str, index: int, leader_epoch: int, delete: bool) -> ErrorCode:
        try:
            partition = self._find(topic, index)
        except KafkaError as problem:
            self._roles.resign(topic, index)
            await self._following.stop(topic, index)
            return problem.code
        if partition is None:
            return ErrorCode.NONE
        if NO_EPOCH < leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if not delete:
            self._roles.resign(topic, index)
            await self._following.stop(topic, index)
            partition.become_follower(NO_LEADER, partition.leader_epoch)
            return ErrorCode.NONE
        try:
            await self._delete(partition)
        except KafkaError as problem:
            log.error("Cannot delete %r: %s", partition, problem)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    async def _leave(self, partition: Partition) -> None:
        self._roles.resign(partition.topic, partition.index)
        await self._following.stop(partition.topic, partition.index)

    async def _try_to_set_aside(self, partition: Partition) -> None:
        await self._leave(partition)
        try:
            await self._replicas.set_aside(partition)
        except (KafkaError, OSError) as problem:
            # The other partitions of the request are served nevertheless.
            log.error("Cannot set %r aside: %s", partition, problem)

    async def _delete(self, partition: Partition) -> None:
        await self._leave(partition)
        topic, index = partition.topic, partition.index
        image = PartitionImage(index, NO_LEADER, partition.leader_epoch, (), (), -1)
        await self._replicas.delete_partitions(TopicImage(topic, partition.log.topic_id, (image,)))


def _is_among(owned: Collection[tuple[str, bytes, int]], partition: Partition) -> bool:
    """Return whether a partition is one of those owned; without an id in ZooKeeper or in its folder its name decides."""
    topic, index, topic_id = partition.topic, partition.index, partition.log.topic_id
    if topic_id == ZERO_UUID:
        return any((topic, index) == (name, number) for name, _, number in owned)
    return not {(topic, topic_id, index), (topic, ZERO_UUID, index)}.isdisjoint(owned)


def _list_assignments(request: LeaderAndIsrRequest) -> Iterator[_Assignment]:
    for topic in request.topic_states:
        for state in topic.partition_states:
            if state.leader != LEADER_DURING_DELETE:
                yield _Assignment(topic.topic_name, topic.topic_id, build_partition_image(state), state.is_new)
    for state in request.ungrouped_partition_states:
        yield _Assignment(state.topic_name, ZERO_UUID, build_partition_image(state), state.is_new)


def _build_response(codes: list[tuple[_Assignment, ErrorCode]]) -> LeaderAndIsrResponse:
    """Answer in both forms: by topic id from version 5 on, by name before."""
    topics: dict[bytes, LeaderAndIsrTopicError] = {}
    errors = []
    for entry, code in codes:
        index = entry.image.partition
        errors.append(LeaderAndIsrPartitionError(topic_name=entry.topic, partition_index=index, error_code=code))
        topic = topics.setdefault(entry.topic_id, LeaderAndIsrTopicError(topic_id=entry.topic_id, partition_errors=[]))
        topic.partition_errors.append(LeaderAndIsrPartitionError(partition_index=index, error_code=code))
    return LeaderAndIsrResponse(partition_errors=errors, topics=list(topics.values()))


def _list_stops(request: StopReplicaRequest) -> Iterator[tuple[str, int, int, bool]]:
    """Yield topic, index, leader epoch and whether to delete, whatever the request's version."""
    for state in request.topic_states:
        for partition in state.partition_states:
            yield state.topic_name, partition.partition_index, partition.leader_epoch, partition.delete_partition
    for topic in request.topics:
        for index in topic.partition_indexes:
            yield topic.name, index, NO_EPOCH, request.delete_partitions
    for ungrouped in request.ungrouped_partitions:
        yield ungrouped.topic_name, ungrouped.partition_index, NO_EPOCH, request.delete_partitions
