"""Reading whole topics: batches are fetched in the thread of the brokers, and decoded in the thread of the test."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.nodes import TRANSIENT_ERRORS
from kafkacompat.testing.rows import Record
from kafkacompat.wire.apis.fetch import AbortedTransaction, FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.batch_header import read_header, split_batches
from kafkacompat.wire.batch_records import read_records
from kafkacompat.wire.errors import ErrorCode, KafkaError, describe_code

if TYPE_CHECKING:
    from kafkacompat.testing.nodes import Nodes

FETCH_VERSION = 12
"""The last version that names topics."""
FETCH_BYTES = 8 << 20
ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
"""Kafka's names; the index is the number on the wire."""
NO_POSITIONS: Mapping[int, int] = {}


class PartitionBatches(NamedTuple):
    """Batches of one partition, and the transactions among them that were aborted.

    The first batch may begin before the fetched `offset`, as when the log begins inside it.
    """

    partition: int
    offset: int
    batches: bytes
    aborted: list[AbortedTransaction]


class TopicReader:
    """Reads a topic from its start, or from *positions* by partition; each `fetch` continues where the last one ended."""

    def __init__(
        self,
        nodes: Nodes,
        topic: str,
        isolation_level: str = "read_uncommitted",
        positions: Mapping[int, int] = NO_POSITIONS,
    ) -> None:
        if isolation_level not in ISOLATION_LEVELS:
            raise BrokerError(f"isolation_level={isolation_level}: give {' or '.join(ISOLATION_LEVELS)}")
        self._nodes = nodes
        self._topic = topic
        self._isolation = ISOLATION_LEVELS.index(isolation_level)
        self._positions = dict(positions)

    async def find_ends(self) -> dict[int, int]:
        """Return the ends of the partitions as consumers see them now, of those that have a leader."""
        topic = self._nodes.find_topic(self._topic)
        ends: dict[int, int] = {}
        for partition in range(0 if topic is None else len(topic.partitions)):
            leader = self._nodes.find_leader(self._topic, partition)
            with suppress(KafkaError):
                if leader is not None:
                    led = leader.broker.replica_manager.find(self._topic, partition)
                    ends[partition] = led.last_stable_offset if self._isolation else led.high_watermark.offset
        return ends

    def has_reached(self, ends: Mapping[int, int]) -> bool:
        """Return whether everything before these offsets was fetched."""
        return all(self._positions.get(partition, 0) >= end for partition, end in ends.items())

    async def fetch(self, wait_s: float) -> list[PartitionBatches]:
        """Return what is new, some of it if it is much. If nothing is, wait for *wait_s*. Raises BrokerError."""
        fetched: list[PartitionBatches] = []

        async def fetch_now() -> bool:
            fetched.extend(await self._fetch_now())
            return bool(fetched)

        await self._nodes.wait_until(fetch_now, wait_s)
        return fetched

    async def _fetch_now(self) -> list[PartitionBatches]:
        topic = self._nodes.find_topic(self._topic)
        partitions = range(0 if topic is None else len(topic.partitions))
        outcomes = [await self.fetch_partition(partition) for partition in partitions]
        return [outcome for outcome in outcomes if outcome is not None]

    async def fetch_partition(self, partition: int) -> PartitionBatches | None:
        """Return the next batches of a partition; None if there are none now, or it has no leader now."""
        leader = self._nodes.find_leader(self._topic, partition)
        if leader is None:
            return None
        offset = self._positions.get(partition, 0)
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=FETCH_BYTES,
            isolation_level=self._isolation,
            topics=[FetchTopic(topic=self._topic, partitions=[wanted])],
        )
        (data,) = (await leader.request(request, FETCH_VERSION)).responses[0].partitions
        batches = take_bytes(data.records)
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions[partition] = leader.broker.replica_manager.find(self._topic, partition).log.log_start_offset
            return await self.fetch_partition(partition)
        if data.error_code in TRANSIENT_ERRORS:
            return None
        if data.error_code:
            raise BrokerError(f"partition {partition} of topic {self._topic}: {describe_code(data.error_code, None)}")
        if not batches:
            return None
        for batch in split_batches(batches):
            self._positions[partition] = read_header(batch).last_offset + 1
        return PartitionBatches(partition, offset, batches, data.aborted_transactions or [])


def take_bytes(records: object) -> bytes:
    """Return records of a response as bytes; the file of a region is released."""
    if not isinstance(records, FileRegion):
        return bytes(records) if isinstance(records, bytes | bytearray | memoryview) else b""
    try:
        return records.pread(0, records.size_bytes)
    finally:
        records.release()


def decode(topic: str, fetched: PartitionBatches) -> Iterator[Record]:
    """Yield the records of batches, without control records and those of aborted transactions."""
    aborted = deque(sorted(fetched.aborted, key=lambda transaction: transaction.first_offset))
    skipped: set[int] = set()
    for batch in split_batches(fetched.batches):
        header = read_header(batch)
        while aborted and aborted[0].first_offset <= header.last_offset:
            skipped.add(aborted.popleft().producer_id)
        if header.is_control:
            skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            for record in read_records(batch):
                offset, timestamp, key, value, headers = record
                if offset >= fetched.offset:
                    yield Record(topic, fetched.partition, offset, timestamp, key, value, headers)
