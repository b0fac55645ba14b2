"""What the leader of a partition knows of its replicas, and what follows from that: values and rules without I/O.

The rules are those of Kafka 3.9 (`Partition.scala`, `Replica.scala`). The in-sync set changes in two steps (KIP-497):
the leader proposes a set, and the controller commits or rejects it. In between the replicas of both sets count, so that
the high watermark is right whichever of them the controller has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

UNKNOWN = -1
"""An offset or a broker epoch that is not known yet, or that a request does not carry."""

SILENT_MS = 2_000
"""Time without a fetch, four times that of a fetch that waits (replica.fetch.wait.max.ms), after which a follower is silent."""

BrokerEpochs: TypeAlias = "Callable[[int], int | None]"
"""Returns the epoch of a broker's registration (KIP-380); None for a broker that is not alive or is shutting down."""


class ReplicaState(NamedTuple):
    """What the leader knows of one follower, by the follower's fetches.

    ``end_offset`` and ``log_start_offset`` are those of the follower's log. ``leader_end_offset`` is the end of the
    leader's log at the last fetch, at ``fetched_ms``. ``caught_up_ms`` is the latest known time at which the follower
    had all that the leader had then. ``broker_epoch`` is that of the last fetch: None before the first one, UNKNOWN
    where the fetch did not carry it. ``heard_ms`` is the time of the fetch before the last one: the follower had its response
    when it sent the last one. A single fetch proves less, as it may have waited in the socket of a leader that stood still.
    """

    end_offset: int = UNKNOWN
    log_start_offset: int = UNKNOWN
    leader_end_offset: int = 0
    fetched_ms: int = 0
    caught_up_ms: int = 0
    broker_epoch: int | None = None
    heard_ms: int = 0

    def after_fetch(
        self, end_offset: int, log_start_offset: int, now_ms: int, leader_end_offset: int, broker_epoch: int
    ) -> ReplicaState:
        """Return the state after a fetch from *end_offset*.

        A fetch up to the leader's end shows that the follower is caught up now. A fetch up to the leader's end of the
        fetch before shows that it was caught up then: with steady small appends a follower is never at the end, but in
        sync.
        """
        caught_up_ms = self.caught_up_ms
        if end_offset >= leader_end_offset:
            caught_up_ms = max(caught_up_ms, now_ms)
        elif end_offset >= self.leader_end_offset:
            caught_up_ms = max(caught_up_ms, self.fetched_ms)
        latest_end_offset = max(leader_end_offset, self.leader_end_offset)
        heard_ms = max(self.heard_ms, self.fetched_ms)
        return ReplicaState(
            end_offset, log_start_offset, latest_end_offset, now_ms, caught_up_ms, broker_epoch, heard_ms
        )

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Return whether the follower has everything, or had everything at most *lag_time_max_ms* ago."""
        return self.end_offset >= leader_end_offset or now_ms - self.caught_up_ms <= lag_time_max_ms


class InSyncSet(NamedTuple):
    """The in-sync set that the controller has committed, and the one that is proposed to it; None without a proposal."""

    committed: frozenset[int]
    partition_epoch: int
    proposed: frozenset[int] | None = None

    @property
    def counted(self) -> frozenset[int]:
        """The replicas that the high watermark waits for: those of either set."""
        return self.committed if self.proposed is None else self.committed | self.proposed

    def propose(self, proposed: frozenset[int]) -> InSyncSet:
        """Return the sets while *proposed* is not confirmed."""
        return self._replace(proposed=proposed)

    def reject(self) -> InSyncSet:
        """Return the committed set alone."""
        return self._replace(proposed=None)


class LeaderState:
    """The leader's view of the replicas of one partition in one leader epoch.

    ``followers`` holds the state of each other replica, ``in_sync`` the in-sync sets, ``epoch_start_offset`` the log's
    end when the leader epoch began. At that time no follower's end is known: the high watermark stays where it is until
    the followers of the in-sync set have fetched.
    """

    __slots__ = ("epoch_start_offset", "followers", "in_sync", "node_id")

    def __init__(self, node_id: int, epoch_start_offset: int, in_sync: InSyncSet) -> None:
        self.node_id = node_id
        self.epoch_start_offset = epoch_start_offset
        self.in_sync = in_sync
        self.followers: dict[int, ReplicaState] = {}

    @classmethod
    def begin(
        cls,
        node_id: int,
        replicas: Collection[int],
        in_sync: Collection[int],
        partition_epoch: int,
        *,
        epoch_start_offset: int,
        now_ms: int,
        before: LeaderState | None = None,
    ) -> LeaderState:
        """Return the state at the begin of a leader epoch; *before* is that of the epoch before, if this broker led it.

        A follower of the in-sync set has its full time to fetch, counted from now.
        """
        leading = cls(node_id, epoch_start_offset, InSyncSet(frozenset(in_sync), partition_epoch))
        known = before.followers if before is not None else {}
        for replica in replicas:
            if replica != node_id:
                began_ms = now_ms if replica in in_sync else 0
                leading.followers[replica] = known.get(replica, ReplicaState())._replace(
                    leader_end_offset=epoch_start_offset if before is not None else UNKNOWN,
                    fetched_ms=began_ms if before is not None else 0,
                    caught_up_ms=began_ms,
                    heard_ms=began_ms,
                )
        return leading

    @classmethod
    def of_single_replica(cls, node_id: int = UNKNOWN) -> LeaderState:
        """Return the state of a partition whose only replica is its leader."""
        return cls(node_id, 0, InSyncSet(frozenset((node_id,)), UNKNOWN))

    def reassign(self, replicas: Collection[int], in_sync: Collection[int], partition_epoch: int) -> None:
        """Take over the replicas and the in-sync set that the controller gives within the same leader epoch.

        A state of the same partition epoch does not end a proposal: the controller may still commit it.
        """
        known = self.followers
        self.followers = {
            replica: known.get(replica, ReplicaState()) for replica in replicas if replica != self.node_id
        }
        if partition_epoch != self.in_sync.partition_epoch:
            self.in_sync = InSyncSet(frozenset(in_sync), partition_epoch)

    # What followers fetch

    def update_follower(
        self, replica: int, end_offset: int, log_start: int, now_ms: int, leader_end_offset: int, broker_epoch: int
    ) -> None:
        """Note a fetch from *end_offset* by an assigned follower whose log begins at *log_start*."""
        self.followers[replica] = self.followers[replica].after_fetch(
            end_offset, log_start, now_ms, leader_end_offset, broker_epoch
        )

    def is_stale(self, replica: int, broker_epoch: int, broker_epochs: BrokerEpochs) -> bool:
        """Return whether a fetch comes from a life of a broker before the present one (KIP-903)."""
        present = broker_epochs(replica)
        return broker_epoch != UNKNOWN and present is not None and present > broker_epoch

    # The high watermark

    def least_in_sync(self, min_insync_replicas: int) -> int:
        """Return how many in-sync replicas the partition needs: no more than it has replicas."""
        return min(min_insync_replicas, len(self.followers) + 1)

    def has_enough_in_sync(self, min_insync_replicas: int) -> bool:
        """Return whether the committed in-sync set is as large as min.insync.replicas requires."""
        return len(self.in_sync.committed) >= self.least_in_sync(min_insync_replicas)

    def high_watermark(
        self,
        current: int,
        own_end_offset: int,
        now_ms: int,
        *,
        min_insync_replicas: int,
        lag_time_max_ms: int,
        broker_epochs: BrokerEpochs,
    ) -> int:
        """Return the high watermark after something has changed; it never goes back behind *current*.

        It is the smallest end of the in-sync replicas. It also waits for a follower that is caught up and may join:
        without that, a fast leader alone in the set would stay ahead of it for ever. It stands still while too few
        replicas are in sync. ``own_end_offset`` is the end of what counts of the leader's own log.
        """
        if not self.has_enough_in_sync(min_insync_replicas):
            return current
        counted = self.in_sync.counted
        end_offset = own_end_offset
        for replica, state in self.followers.items():
            if state.end_offset < end_offset and (
                replica in counted
                or (
                    state.is_caught_up(own_end_offset, now_ms, lag_time_max_ms)
                    and self._is_eligible(state, broker_epochs(replica))
                )
            ):
                end_offset = state.end_offset
        return max(current, end_offset)

    def low_watermark(self, own_start_offset: int, broker_epochs: BrokerEpochs) -> int:
        """Return the smallest log start offset of all live replicas."""
        low = own_start_offset
        for replica, state in self.followers.items():
            if state.log_start_offset < low and broker_epochs(replica) is not None:
                low = state.log_start_offset
        return low

    # The in-sync set

    @staticmethod
    def _is_eligible(state: ReplicaState, present_epoch: int | None) -> bool:
        """Return whether a broker is alive, and has fetched in its present life (KIP-903), where its epoch is known.

        In ZooKeeper mode brokers do not know the epochs of others: the controller checks that of the fetch.
        """
        if present_epoch is None or state.broker_epoch is None:
            return False
        return UNKNOWN in (present_epoch, state.broker_epoch) or state.broker_epoch == present_epoch

    def propose_expansion(
        self, replica: int, high_watermark: int, broker_epochs: BrokerEpochs
    ) -> frozenset[int] | None:
        """Propose the in-sync set with a follower that has reached it; None where it has not, or a proposal is under way.

        The follower has to be past the start of the leader epoch too. Before, it may lack records that were committed
        in an earlier epoch while this leader's high watermark still lags.
        """
        in_sync, state = self.in_sync, self.followers[replica]
        if in_sync.proposed is not None or replica in in_sync.committed:
            return None
        if state.end_offset < max(high_watermark, self.epoch_start_offset):
            return None
        if not self._is_eligible(state, broker_epochs(replica)):
            return None
        return self._propose(in_sync.committed | {replica})

    def may_have_successor(self, now_ms: int) -> bool:
        """Return whether another replica may lead by now: one that is in sync and has not fetched here lately."""
        return any(
            now_ms - min(follower.fetched_ms, follower.heard_ms) > SILENT_MS
            for replica, follower in self.followers.items()
            if replica in self.in_sync.counted
        )

    def hears_no_follower(self, now_ms: int) -> bool:
        """Return whether no in-sync follower has fetched here lately, so that this leader may have been replaced."""
        in_sync = [state for replica, state in self.followers.items() if replica in self.in_sync.counted]
        # In a new leader epoch the followers have the same time for their first fetch.
        return bool(in_sync) and all(now_ms - follower.heard_ms > SILENT_MS for follower in in_sync)

    def propose_shrink(self, now_ms: int, lag_time_max_ms: int, leader_end_offset: int) -> frozenset[int] | None:
        """Propose the in-sync set without the followers that lag; None where none does, or a proposal is under way."""
        in_sync = self.in_sync
        if in_sync.proposed is not None:
            return None
        late = {
            replica
            for replica in in_sync.committed
            if replica != self.node_id and not self._keeps_up(replica, now_ms, lag_time_max_ms, leader_end_offset)
        }
        return self._propose(in_sync.committed - late) if late else None

    def _keeps_up(self, replica: int, now_ms: int, lag_time_max_ms: int, leader_end_offset: int) -> bool:
        state = self.followers.get(replica)
        return state is not None and state.is_caught_up(leader_end_offset, now_ms, lag_time_max_ms)

    def _propose(self, proposed: frozenset[int]) -> frozenset[int]:
        self.in_sync = self.in_sync.propose(proposed)
        return proposed

    def commit(self, new_set: Collection[int], partition_epoch: int) -> bool:
        """Take over the set that the controller has committed; return False for one that is older than the known set."""
        if partition_epoch < self.in_sync.partition_epoch:
            return False
        self.in_sync = InSyncSet(frozenset(new_set), partition_epoch)
        return True

    def reject(self) -> None:
        """Forget the proposed set: the controller has said that it did not commit it."""
        self.in_sync = self.in_sync.reject()

    def list_broker_epochs(self, replicas: Collection[int]) -> dict[int, int]:
        """Return the broker epoch that each replica has fetched with, UNKNOWN without one (AlterPartition v3)."""
        states = {replica: self.followers.get(replica) for replica in replicas}
        return {
            replica: UNKNOWN if state is None or state.broker_epoch is None else state.broker_epoch
            for replica, state in states.items()
        }

    # Reading from followers

    def find_nearest_replica(self, offset: int, rack: str, racks: Mapping[int, str | None]) -> int:
        """Return the replica in a consumer's rack to read *offset* from, or UNKNOWN for this leader (KIP-392).

        As Kafka's RackAwareReplicaSelector: of the in-sync followers in the rack that have the offset, the one with the
        most records, then the one that caught up last. A leader in the same rack keeps its readers.
        """
        if not rack or racks.get(self.node_id) == rack:
            return UNKNOWN
        near = [
            (state.end_offset, state.caught_up_ms, replica)
            for replica, state in self.followers.items()
            if racks.get(replica) == rack
            and replica in self.in_sync.committed
            and state.log_start_offset <= offset <= state.end_offset
        ]
        return max(near)[2] if near else UNKNOWN
