"""A topic whose log loses its end, and gets other records at the same offsets under a new leader epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.partitions.cluster_view import ClusterView
from kafkacompat.testing.nasty.contents import make_records
from kafkacompat.testing.nasty.description import NastyTopic, NastyTopicError, describe_plain
from kafkacompat.testing.nasty.partition_writer import PartitionWriter

if TYPE_CHECKING:
    from typing import Any

    from kafkacompat.broker import Broker
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.testing.nasty.nodes import Kafka, Nodes

LAG_TIME_MAX_MS = 30_000
BATCH = 5


class UncleanTruncation:
    """A topic of one partition; `before` is what consumers see until `truncate`."""

    def __init__(self, kafka: Kafka, nodes: Nodes, before: NastyTopic, kept: int, replaced: int) -> None:
        self.before = before
        self._kafka = kafka
        self._nodes = nodes
        self._kept = kept
        self._replaced = replaced

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.before.name

    def truncate(self) -> NastyTopic:
        """Let the log lose its end, and return what consumers see from now on.

        The leader epoch is larger by one or more, and the lost offsets have other records. A consumer that has read lost records
        and knows leader epochs (KIP-320) goes back to the first lost offset, or reports the truncation if it has no
        auto.offset.reset. One that does not know them continues at its position: it misses the other records before that.
        Raises NastyTopicError if the log was truncated already.
        """
        after: NastyTopic = self._kafka.call(self._truncate)
        return after

    async def _truncate(self) -> NastyTopic:
        writer = await PartitionWriter.open(self._nodes, self.name)
        if writer.end_offset != self.before.end_offsets[0]:
            raise NastyTopicError(f"the log of '{self.name}' has changed since its creation; create another topic")
        await lose_end(writer.broker, writer.partition, self._kept, self._nodes.now_ms())
        kept = self.before.read_uncommitted[: self._kept]
        rows = make_records(range(self._kept, self._kept + self._replaced), self._nodes.now_ms(), word="other")
        others = []
        for start in range(0, len(rows), BATCH):
            others += await writer.append(rows[start : start + BATCH])
        return describe_plain(self.name, [*kept, *others], {0: writer.end_offset})


async def lose_end(broker: Broker, partition: Partition, offset: int, now_ms: int) -> None:
    """Truncate a partition of a single node, as a power failure does that loses what was not synced; a new epoch follows."""
    controller: Any = broker.controller
    node_id = broker.config.node_id
    # Meanwhile clients get NOT_LEADER_OR_FOLLOWER, and try again.
    partition.become_follower(-1, partition.leader_epoch + 1)
    await broker.replica_manager.truncate(partition, offset)
    elected = await controller.begin_leader_epoch(partition.topic, partition.index)
    alone = ClusterView(node_id, LAG_TIME_MAX_MS, lambda node: None, _NoUpdates())
    partition.become_leader(alone, elected.leader_epoch, [node_id], [node_id], elected.partition_epoch, now_ms)


class _NoUpdates:
    """In-sync sets of a partition without followers: they never change."""

    def propose(self, *_: object) -> Any:
        """See InSyncUpdates.propose."""
        raise AssertionError("a partition without followers proposes no in-sync set")


async def make_unclean_truncation(nodes: Nodes, name: str, records: int, kept: int) -> NastyTopic:
    """See NastyTopics.unclean_truncation."""
    if not 0 < kept < records or kept % BATCH:
        raise NastyTopicError(
            f"kept={kept} is not valid; choose a multiple of {BATCH} that is less than records={records}"
        )
    await nodes.create_topic(name)
    writer, base_ms = await PartitionWriter.open(nodes, name), nodes.now_ms()
    written = []
    rows = make_records(range(records), base_ms)
    for start in range(0, records, BATCH):
        written += await writer.append(rows[start : start + BATCH])
    return describe_plain(name, written, {0: writer.end_offset})
