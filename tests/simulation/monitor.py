"""What must hold at every moment of a run, checked after each call that may have changed it.

`watching` hooks the attributes of partitions' states: a new role, epoch or high watermark puts a replica on a list, and `check`
examines the replicas on it. So no state between two calls is missed, and nothing else is examined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafkacompat.partitions.partition_state import PartitionState
from tests.simulation.cluster_state import ClusterState, ReplicaKey, StoredPartition
from tests.simulation.committed import CommittedLog
from tests.simulation.machines import Life, Machine, State
from tests.simulation.settings import FSYNC
from tests.simulation.watched import watch_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping


class Monitor:
    """Checks the replicas of all brokers, and decides which partitions may have lost acknowledged records.

    *report* receives a sentence for each violation.
    """

    def __init__(
        self,
        machines: Mapping[int, Machine],
        stored: ClusterState,
        acks_after: str,
        report: Callable[[str], object],
    ) -> None:
        self.lossy: dict[ReplicaKey, str] = {}
        """Partitions of which acknowledged records may be lost, with their names."""
        self._machines = machines
        self._stored = stored
        self._waits_for_disks = acks_after == FSYNC
        self._report = report
        self.changed: dict[PartitionState, None] = {}
        self._replicas: dict[tuple[int, ReplicaKey], PartitionState] = {}
        self._epochs: dict[PartitionState, int] = {}
        self._high_watermarks: dict[PartitionState, int] = {}
        self._committed: dict[ReplicaKey, CommittedLog] = {}
        self._leaders: dict[tuple[ReplicaKey, int], Life] = {}
        self._lacking: set[tuple[int, ReplicaKey]] = set()
        stored.on_partition = self._note_partition

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch all partitions of this process."""
        note = self.changed.setdefault

        def changed(state: PartitionState) -> None:
            note(state, None)

        with watch_attributes(PartitionState, dict.fromkeys(("high_watermark", "leading", "leader_epoch"), changed)):
            yield

    def forget(self, life: Life) -> None:
        """Forget the replicas of a process that has ended."""
        gone = [key for key, state in self._replicas.items() if key[0] == life.node and _life_of(state) == life]
        for key in gone:
            state = self._replicas.pop(key)
            self._epochs.pop(state, None)
            self._high_watermarks.pop(state, None)

    def check(self) -> None:
        """Examine the replicas that have changed."""
        while self.changed:
            state = next(iter(self.changed))
            del self.changed[state]
            life = _life_of(state)
            if life is not None and self._machines[life.node].life == life and state.refusal is None:
                # A disk fails for the broker, not for the monitor.
                with self._machines[life.node].files.without_failures():
                    self._examine(state, life)

    # One replica

    def _examine(self, state: PartitionState, life: Life) -> None:
        key = ReplicaKey(state.log.topic_id, state.log.partition)
        if not hasattr(state, "refusal") or state.refusal is not None:
            return
        self._check_epoch(state, life)
        if state.leader_id >= 0:
            self._replicas[life.node, key] = state
        if state.leading is not None and state.leader_id >= 0:
            self._check_leader(state, life, key)
        end = state.high_watermark.offset
        if end > self._high_watermarks.get(state, -1):
            self._check_high_watermark(state, life, key, self._high_watermarks.get(state, 0), end)
        self._high_watermarks[state] = end

    def _check_epoch(self, state: PartitionState, life: Life) -> None:
        before = self._epochs.get(state, -1)
        if state.leader_epoch < before:
            self._report(f"the leader epoch of {state.name} on {life} went from {before} back to {state.leader_epoch}")
        self._epochs[state] = state.leader_epoch

    def _check_leader(self, state: PartitionState, life: Life, key: ReplicaKey) -> None:
        first = self._leaders.setdefault((key, state.leader_epoch), life)
        if first != life and not self._stored.is_going(key):
            self._report(f"{first} and {life} lead {state.name} in leader epoch {state.leader_epoch}")
        stored = self._stored.find(key)
        committed = self._committed.get(key)
        if (
            stored is not None
            and stored.state is not None
            and committed is not None
            and stored.state.leader_epoch == state.leader_epoch
            and state.log.log_end_offset < committed.end
        ):
            self._report_unless_lossy(
                key,
                f"{life} leads {state.name} in epoch {state.leader_epoch} with a log that ends at"
                f" {state.log.log_end_offset}; everything before {committed.end} is committed",
            )

    def _check_high_watermark(self, state: PartitionState, life: Life, key: ReplicaKey, start: int, end: int) -> None:
        if key in self.lossy:
            return
        # A broker that stops can hear of a larger in-sync set after it has closed its logs.
        if "compact" not in state.log.config.cleanup_policy and not state.log.offline:
            committed = self._committed.setdefault(key, CommittedLog())
            with self._machines[life.node].files.without_failures():
                difference = committed.compare(state.log, start, end)
            if difference is not None:
                self._report_unless_lossy(key, f"{state.name} on {life} below its high watermark {end}: {difference}")
        stored = self._stored.find(key)
        if state.leading is None or stored is None or stored.state is None:
            return
        for node in stored.state.in_sync_replicas:
            replica = self._replicas.get((node, key))
            if replica is None or replica.refusal is not None or (node, key) in self._lacking:
                continue
            own_end = self._find_end(replica)
            if own_end < end:
                self._report_unless_lossy(
                    key,
                    f"the high watermark of {state.name} on {life} is {end}, and broker {node}, which is in sync by"
                    f" ZooKeeper, has the log up to {own_end}",
                )

    def _report_unless_lossy(self, key: ReplicaKey, finding: str) -> None:
        # A replica of a topic in deletion that has deleted its log may be started once more, with an empty one.
        if key not in self.lossy and not self._stored.is_going(key):
            self._report(finding)

    # What may be lost

    def allow_loss(self, stored: StoredPartition) -> None:
        """Expect no more of a partition's records."""
        self.lossy.setdefault(stored.key, f"{stored.topic}-{stored.key.partition}")

    def note_power_failure(self, node: int) -> None:
        """Note, before it happens, that a machine loses what is not synced."""
        if self._waits_for_disks:
            return
        for stored in self._stored.partitions.values():
            key = stored.key
            state = self._replicas.get((node, key))
            # The whole log counts, not only its committed part: the leader may yet receive the fetch that reports the log's end.
            is_safe = state is not None and state.log.recovery_point >= state.log.log_end_offset
            if node in stored.replicas and not is_safe:
                self._lacking.add((node, key))

    def note_outage(self) -> None:
        """Note that brokers went away, or do not know what others decide."""
        for stored in self._stored.partitions.values():
            self._assess(stored)

    def _note_partition(self, before: StoredPartition, after: StoredPartition) -> None:
        assert after.state is not None
        old = before.state.in_sync_replicas if before.state is not None else ()
        for node in after.state.in_sync_replicas:
            if node not in old:
                # The leader may propose a follower whose power has failed since: nobody has noticed it yet.
                if self._machines[node].state is State.UP:
                    self._lacking.discard((node, after.key))
                if before.state is not None:
                    self._check_joining(node, after)
        if after.topic in self._stored.unclean_topics:
            self.allow_loss(after)
        self._assess(after)

    def _check_joining(self, node: int, stored: StoredPartition) -> None:
        """Check that a replica that joins the in-sync set has all that is committed: it may be elected from now on."""
        replica, committed = self._replicas.get((node, stored.key)), self._committed.get(stored.key)
        if replica is None or committed is None or replica.refusal is not None:
            return
        own_end = self._find_end(replica)
        if own_end < committed.end:
            self._report_unless_lossy(
                stored.key,
                f"broker {node} joins the in-sync set of {replica.name} with a log up to {own_end}; everything before"
                f" {committed.end} is committed",
            )

    def _find_end(self, replica: PartitionState) -> int:
        """Return the end of what counts of a replica's log."""
        return replica.log.recovery_point if self._waits_for_disks else replica.log.log_end_offset

    def _assess(self, stored: StoredPartition) -> None:
        """Loss is allowed when a replica has lost its end, and no other one that is in sync can lead instead."""
        if not self._lacking or stored.state is None:
            return
        in_sync = stored.state.in_sync_replicas
        lacking = [node for node in in_sync if (node, stored.key) in self._lacking]
        if lacking and not any(node not in lacking and self._is_able(node) for node in in_sync):
            self.allow_loss(stored)

    def _is_able(self, node: int) -> bool:
        machine = self._machines[node]
        return machine.state is State.UP and not machine.lane.is_paused

    # The end

    def compare_replicas(self) -> None:
        """Compare the whole logs of all in-sync replicas."""
        for stored in self._stored.partitions.values():
            if stored.state is None or stored.key in self.lossy:
                continue
            for node in stored.state.in_sync_replicas:
                replica = self._replicas.get((node, stored.key))
                if replica is not None and replica.refusal is None:
                    start = replica.log.log_start_offset
                    with self._machines[node].files.without_failures():
                        self._check_high_watermark(
                            replica, _expect_life(replica), stored.key, start, replica.high_watermark.offset
                        )


def _life_of(state: PartitionState) -> Life | None:
    disk: Any = state.host.disk
    life: Life | None = getattr(getattr(disk, "_disk", None), "owner", None)
    return life


def _expect_life(state: PartitionState) -> Life:
    life = _life_of(state)
    assert life is not None
    return life
