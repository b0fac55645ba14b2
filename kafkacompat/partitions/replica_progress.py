"""The leader's work with the replicas of one partition: the high watermark, the waiting appends, the in-sync set."""

from __future__ import annotations

import logging
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

from twisted.internet.defer import fail

from kafkacompat.partitions.fetch_watchers import measure_distance
from kafkacompat.partitions.leadership import InSyncSet, LeaderState
from kafkacompat.partitions.offset_waits import OffsetWaits
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from kafkacompat.partitions.cluster_view import ClusterView, CommittedInSync
    from kafkacompat.partitions.fetch_watchers import FetchWatchers
    from kafkacompat.partitions.partition_state import PartitionState
    from kafkacompat.storage.log.log import OffsetPosition

log = logging.getLogger(__name__)

NOT_APPLIED = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller knows the partition as this leader does, and has not applied the proposal."""

AWAITS_NEWS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""The controller knows better: it sends the partition's state soon. Until then both sets count."""


class FetchingReplica(NamedTuple):
    """The broker that a Fetch comes from; ``broker_epoch`` is -1 before Fetch v15."""

    replica_id: int
    broker_epoch: int


class ReplicaProgress:
    """Follows the replicas of a partition while this broker leads it.

    ``cluster`` is None on a single node, where nothing of this is called. No clock is needed: the time comes with
    appends, fetches and checks.
    """

    __slots__ = ("_deletions", "_is_locating", "_now_ms", "_refused", "_replicated", "_state", "_watchers", "cluster")

    def __init__(self, state: PartitionState, watchers: FetchWatchers) -> None:
        self._state = state
        self._watchers = watchers
        self._replicated = OffsetWaits()
        self._deletions = OffsetWaits()
        self._refused: InSyncSet | None = None
        self._is_locating = False
        self._now_ms = 0
        self.cluster: ClusterView | None = None

    # The high watermark

    def advance(self, now_ms: int | None = None) -> None:
        """Move the high watermark to where the in-sync replicas are."""
        state, cluster = self._state, self.cluster
        leading = state.leading
        if leading is None or cluster is None:
            return
        if now_ms is not None:
            self._now_ms = now_ms
        offset = leading.high_watermark(
            state.high_watermark.offset,
            state.own_end_offset(),
            self._now_ms,
            min_insync_replicas=state.log.config.min_insync_replicas,
            lag_time_max_ms=cluster.lag_time_max_ms,
            broker_epochs=cluster.broker_epochs,
        )
        if offset > state.high_watermark.offset:
            self._advance_to(offset)

    def _advance_to(self, offset: int) -> None:
        state = self._state
        try:
            place = state.log.reader.find_position(offset, may_block=False)
        except (ColdDataError, CorruptDataError):
            self._locate(offset)
        except KafkaError as problem:
            state.report_failure(problem)
        else:
            self._reach(place)

    def _reach(self, end: OffsetPosition) -> None:
        self.show(end)
        self._replicated.release(end.offset)

    def show(self, end: OffsetPosition) -> None:
        """Raise the high watermark to *end* and notify the waiting fetches; do nothing where it is there already."""
        state = self._state
        before = state.high_watermark
        if end.offset > before.offset:
            state.raise_high_watermark(end)
            self._watchers.notify(measure_distance(before, state.high_watermark))

    def _locate(self, offset: int) -> None:
        """Find the place of a new high watermark on the disk thread."""
        if self._is_locating:
            return
        self._is_locating = True
        state, opened = self._state, self._state.log

        def located(place: OffsetPosition) -> None:
            self._is_locating = False
            if opened is state.log and state.leading is not None:
                self._reach(place)
            self.advance()

        def not_located(failure: Failure) -> None:
            self._is_locating = False
            state.report_disk_failure(failure)

        state.disk.run(opened.reader.locate, offset).addCallbacks(located, not_located)

    # Appends that wait

    def check_enough_in_sync(self) -> None:
        """Raise KafkaError where too few replicas are in sync for an append with acks=all: NOT_ENOUGH_REPLICAS.

        Raises NOT_LEADER_OR_FOLLOWER where this broker does not lead the partition.
        """
        if self._state.leading is None:
            raise self._state.not_leader()
        if not self._has_enough():
            size = len(self._state.leading.in_sync.committed)
            detail = f"{size} in-sync replicas are fewer than min.insync.replicas requires"
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, detail)

    def _has_enough(self) -> bool:
        leading = self._state.leading
        return leading is not None and leading.has_enough_in_sync(self._state.log.config.min_insync_replicas)

    def wait_for_replicas(self, end_offset: int) -> Deferred[None] | None:
        """Return None where everything before *end_offset* is replicated, else a Deferred that fires when it is.

        Fails with KafkaError NOT_ENOUGH_REPLICAS_AFTER_APPEND where the in-sync set becomes too small meanwhile, with
        NOT_LEADER_OR_FOLLOWER where the leadership is lost, and with the refusal of a partition that goes away.
        """
        state = self._state
        if state.leading is None:
            return fail(state.refusal or state.not_leader())
        return None if state.high_watermark.offset >= end_offset else self._replicated.add(end_offset)

    def low_watermark(self) -> int:
        """Return the smallest log start offset of the live replicas; raises KafkaError NOT_LEADER_OR_FOLLOWER."""
        state = self._state
        if state.leading is None:
            raise state.not_leader()
        start_offset = state.log.log_start_offset
        return (
            start_offset
            if self.cluster is None
            else state.leading.low_watermark(start_offset, self.cluster.broker_epochs)
        )

    def wait_for_deletion(self, offset: int) -> Deferred[None] | None:
        """Return None where every live replica has deleted what is before *offset*, else a Deferred that fires then."""
        return None if self.low_watermark() >= offset else self._deletions.add(offset)

    def _check_deletions(self) -> None:
        if self._deletions and self._state.leading is not None:
            self._deletions.release(self.low_watermark())

    def refuse(self, refusal: KafkaError) -> None:
        """Fail everything that waits for replicas: the partition goes away, or another broker leads it."""
        self._replicated.refuse(refusal)
        self._deletions.refuse(refusal)

    # Fetches of replicas

    def check_replica(self, replica: FetchingReplica, current_leader_epoch: int) -> None:
        """Check that a fetch comes from an assigned replica in its broker's present life.

        Raises KafkaError UNKNOWN_LEADER_EPOCH for a broker that is no replica as far as this leader knows: it tries
        again. Without a leader epoch in the request, and for a stale broker epoch (KIP-903), raises
        NOT_LEADER_OR_FOLLOWER.
        """
        state, cluster = self._state, self.cluster
        leading = state.leading
        if leading is None:
            raise state.not_leader()
        replica_id, broker_epoch = replica
        if cluster is None or replica_id not in leading.followers:
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if current_leader_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(code, f"broker {replica_id} is not known as a replica of {state.name}")
        if leading.is_stale(replica_id, broker_epoch, cluster.broker_epochs):
            detail = f"broker {replica_id} was registered again after epoch {broker_epoch}"
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, detail)

    def is_throttled(self, replica: FetchingReplica) -> bool:
        """Return whether a follower that is not in sync gets nothing at the moment, to leave others room (KIP-73)."""
        state, cluster = self._state, self.cluster
        quota = None if cluster is None else cluster.leader_quota
        if quota is None or state.leading is None or not quota.is_exceeded():
            return False
        is_in_sync = replica[0] in state.leading.in_sync.committed
        return not is_in_sync and quota.is_throttled(state.log.topic, state.log.partition)

    def count_sent(self, size_bytes: int) -> None:
        """Count bytes that a follower fetches for the throttle."""
        if self.cluster is not None and self.cluster.leader_quota is not None:
            self.cluster.leader_quota.record(self._state.log.topic, self._state.log.partition, size_bytes)

    def note_fetch(self, replica: FetchingReplica, offset: int, log_start_offset: int, now_ms: int) -> None:
        """Note that a follower has everything before *offset*."""
        state, cluster = self._state, self.cluster
        leading = state.leading
        assert leading is not None
        assert cluster is not None
        self._now_ms = now_ms
        replica_id, broker_epoch = replica
        before = leading.followers[replica_id]
        leading.update_follower(
            replica_id, offset, log_start_offset, now_ms, state.log.state.log_end_offset, broker_epoch
        )
        new_set = leading.propose_expansion(replica_id, state.high_watermark.offset, cluster.broker_epochs)
        if new_set is not None:
            self._submit(leading, new_set)
        if before.end_offset != offset:
            self.advance(now_ms)
        if before.log_start_offset != log_start_offset:
            self._check_deletions()

    def note_lost_brokers(self, lost: AbstractSet[int], now_ms: int) -> None:
        """Draw the consequences for the high watermark and for deletions: neither waits for brokers that are gone."""
        leading = self._state.leading
        if leading is not None and not lost.isdisjoint(leading.followers):
            self.advance(now_ms)
            self._check_deletions()

    # The in-sync set

    def check_in_sync(self, now_ms: int) -> None:
        """Propose to remove followers that lag. To be called every half of replica.lag.time.max.ms."""
        state, cluster = self._state, self.cluster
        leading = state.leading
        if leading is None or cluster is None:
            return
        self._now_ms = now_ms
        refused, self._refused = self._refused, None
        if refused is not None and refused is leading.in_sync and refused.proposed is not None:
            self._submit(leading, refused.proposed)
        new_set = leading.propose_shrink(now_ms, cluster.lag_time_max_ms, state.log.log_end_offset)
        if new_set is not None:
            self._submit(leading, new_set)
        self.advance(now_ms)
        self._check_deletions()

    def _submit(self, leading: LeaderState, new_set: frozenset[int]) -> None:
        assert self.cluster is not None
        state, pending = self._state, leading.in_sync
        log.debug("%r: proposing in-sync replicas %s", state, sorted(new_set))
        proposing = self.cluster.updates.propose(state, new_set, state.leader_epoch, pending.partition_epoch)
        proposing.addCallbacks(
            self._committed, self._not_committed, callbackArgs=(leading, pending), errbackArgs=(leading, pending)
        )

    def _is_pending(self, leading: LeaderState, pending: InSyncSet) -> bool:
        """Return whether the controller has not sent another state since the proposal."""
        return self._state.leading is leading and leading.in_sync is pending

    def _committed(self, committed: CommittedInSync, leading: LeaderState, pending: InSyncSet) -> None:
        state = self._state
        if not self._is_pending(leading, pending) or committed.leader_epoch != state.leader_epoch:
            return
        assert self.cluster is not None
        if leading.commit(committed.in_sync, committed.partition_epoch):
            self.cluster.changes.note_change(len(pending.committed), len(committed.in_sync))
            self.take_in_sync()

    def take_in_sync(self, now_ms: int | None = None) -> None:
        """Draw the consequences of a committed in-sync set."""
        leading = self._state.leading
        assert leading is not None
        self._state.partition_epoch = leading.in_sync.partition_epoch
        self.advance(now_ms)
        if not self._has_enough():
            detail = "the in-sync set became smaller than min.insync.replicas while the batch waited for it"
            self._replicated.refuse(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, detail))

    def _not_committed(self, failure: Failure, leading: LeaderState, pending: InSyncSet) -> None:
        assert self.cluster is not None
        self.cluster.changes.failures += 1
        problem = failure.value
        code = problem.code if isinstance(problem, KafkaError) else None
        if not self._is_pending(leading, pending):
            return
        # A replica that may not join, for example one that is stopping, is news of no trouble; it is proposed again.
        level = logging.INFO if code in NOT_APPLIED else logging.WARNING
        log.log(level, "%r: the in-sync set was not changed: %s", self._state, problem)
        if code in NOT_APPLIED:
            leading.reject()
            self.advance()
        elif code not in AWAITS_NEWS:
            self._refused = pending
