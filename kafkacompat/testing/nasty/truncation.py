"""A topic whose log loses its end, and gets other records at the same offsets under a new leader epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kafkacompat.partitions.cluster_view import ClusterView
from kafkacompat.testing.nasty.broker_access import Kafka
from kafkacompat.testing.nasty.contents import make_records
from kafkacompat.testing.nasty.description import ExpectedRecord, NastyTopic, NastyTopicError, describe_plain
from kafkacompat.testing.nasty.partition_writer import PartitionWriter

if TYPE_CHECKING:
    from kafkacompat.testing.nasty.broker_access import BrokerAccess
    from kafkacompat.wire.record_batch import NewRecord

LAG_TIME_MAX_MS = 30_000
BATCH = 5
MORE = 5
"""How many more records are written after the truncation than were lost."""


class Cluster(Kafka, Protocol):
    """What a truncation needs of a fixture's cluster."""

    def start_broker(self, broker_id: int) -> None:
        """Start a broker that was stopped."""

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker in order."""

    def kill_broker(self, broker_id: int) -> None:
        """End a broker without notice."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The contents of the topic `name`: it begins with `records`, keeps the first `kept`, and gets others after these."""

    name: str
    records: int
    kept: int

    def check(self) -> None:
        """Raise NastyTopicError for numbers that do not fit."""
        if not 0 < self.kept < self.records or self.kept % BATCH:
            reason = f"choose a multiple of {BATCH} that is less than records={self.records}"
            raise NastyTopicError(f"kept={self.kept} is not valid; {reason}")

    def list_others(self, timestamp: int) -> list[NewRecord]:
        """Return the records that are written after the truncation."""
        return make_records(range(self.kept, self.records + MORE), timestamp, word="other")

    def describe_after(self, before: NastyTopic, others: list[ExpectedRecord]) -> NastyTopic:
        """Return what consumers see after the truncation."""
        return describe_plain(self.name, [*before.read_uncommitted[: self.kept], *others], {0: self.records + MORE})


class UncleanTruncation:
    """A topic of one partition; `before` is what consumers see until `truncate`. ``change`` makes the truncation."""

    def __init__(self, before: NastyTopic, change: Callable[[NastyTopic], NastyTopic]) -> None:
        self.before = before
        self._change = change
        self._is_truncated = False

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.before.name

    def truncate(self) -> NastyTopic:
        """Let the log lose its end, and return what consumers see from now on.

        The leader epoch is larger by one or more, and the lost offsets have other records. A consumer that has read lost records
        and knows leader epochs (KIP-320) goes back to the first lost offset, or reports the truncation if it has no
        auto.offset.reset. A consumer without leader epochs continues at its position, and misses the other records before it.
        Raises NastyTopicError if the log was truncated already.
        """
        if self._is_truncated:
            raise NastyTopicError(f"the log of '{self.name}' was truncated already; create another topic")
        self._is_truncated = True
        return self._change(self.before)


async def append_in_batches(writer: PartitionWriter, rows: list[NewRecord]) -> list[ExpectedRecord]:
    """Append records in small batches; returns them as consumers see them."""
    appended: list[ExpectedRecord] = []
    for start in range(0, len(rows), BATCH):
        appended += await writer.append(rows[start : start + BATCH])
    return appended


# A single node


def make_on_one_node(kafka: Kafka, access: BrokerAccess, plan: Plan) -> UncleanTruncation:
    """Make the topic on a single node, which will lose the log's end as in a power failure."""
    before = kafka.call(_make_alone, access, plan)
    return UncleanTruncation(before, lambda before: kafka.call(_truncate_alone, access, plan, before))


async def _make_alone(access: BrokerAccess, plan: Plan) -> NastyTopic:
    await access.create_topic(plan.name)
    writer = await PartitionWriter.open(access, plan.name)
    written = await append_in_batches(writer, make_records(range(plan.records), access.now_ms()))
    return describe_plain(plan.name, written, {0: plan.records})


async def _truncate_alone(access: BrokerAccess, plan: Plan, before: NastyTopic) -> NastyTopic:
    writer = await PartitionWriter.open(access, plan.name)
    broker, partition = writer.broker, writer.partition
    controller: Any = broker.controller
    node_id = broker.config.node_id
    # Until the end clients get NOT_LEADER_OR_FOLLOWER, and try again.
    partition.become_follower(-1, partition.leader_epoch + 1)
    await broker.replica_manager.truncate(partition, plan.kept)
    elected = await controller.begin_leader_epoch(plan.name, 0)
    alone = ClusterView(node_id, LAG_TIME_MAX_MS, lambda node: None, _NoUpdates())
    partition.become_leader(alone, elected.leader_epoch, [node_id], [node_id], elected.partition_epoch, access.now_ms())
    # Nothing waits from here on: no consumer can fetch from the shorter log.
    others = await append_in_batches(writer, plan.list_others(access.now_ms()))
    return plan.describe_after(before, others)


class _NoUpdates:
    """In-sync sets of a partition without followers: they never change."""

    def propose(self, *_: object) -> Any:
        """See InSyncUpdates.propose."""
        raise AssertionError("a partition without followers proposes no in-sync set")


# A cluster


def make_in_cluster(cluster: Cluster, access: BrokerAccess, plan: Plan) -> UncleanTruncation:
    """Make the topic with two replicas; the follower stops before the log's end is written."""
    kept, leader, follower = cluster.call(_make_replicated, access, plan)
    cluster.stop_broker(follower)
    lost = cluster.call(_write_unreplicated, access, plan)
    before = describe_plain(plan.name, [*kept, *lost], {0: plan.records})

    def elect_follower(before: NastyTopic) -> NastyTopic:
        cluster.kill_broker(leader)
        cluster.start_broker(follower)
        others = cluster.call(_write_others, access, plan)
        cluster.start_broker(leader)
        cluster.call(_wait_for_replicas, access, plan)
        return plan.describe_after(before, others)

    return UncleanTruncation(before, elect_follower)


async def _make_replicated(access: BrokerAccess, plan: Plan) -> tuple[list[ExpectedRecord], int, int]:
    await access.create_topic(plan.name, 1, 2, unclean_leader_election_enable="true", min_insync_replicas="1")
    writer = await PartitionWriter.open(access, plan.name)
    kept = await append_in_batches(writer, make_records(range(plan.kept), access.now_ms()))
    image = writer.broker.metadata.image.partition(plan.name, 0)
    assert image is not None
    (follower,) = [node for node in image.replicas if node != image.leader]
    return kept, image.leader, follower


async def _write_unreplicated(access: BrokerAccess, plan: Plan) -> list[ExpectedRecord]:
    writer = await PartitionWriter.open(access, plan.name)
    rows = make_records(range(plan.kept, plan.records), access.now_ms())
    lost = await append_in_batches(writer, rows)
    await access.wait_for(
        lambda: writer.partition.high_watermark.offset == plan.records or None, f"the high watermark of '{plan.name}'"
    )
    return lost


async def _write_others(access: BrokerAccess, plan: Plan) -> list[ExpectedRecord]:
    writer = await PartitionWriter.open(access, plan.name)
    return await append_in_batches(writer, plan.list_others(access.now_ms()))


async def _wait_for_replicas(access: BrokerAccess, plan: Plan) -> None:
    """Wait until the former leader has truncated its log, and is in sync."""

    def has_both() -> bool | None:
        image = access.brokers[0].metadata.image.partition(plan.name, 0)
        return (image is not None and len(image.in_sync_replicas) == len(image.replicas)) or None

    await access.wait_for(has_both, f"the second replica of '{plan.name}'")
