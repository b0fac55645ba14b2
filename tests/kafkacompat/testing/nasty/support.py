"""A broker in memory on which nasty topics are made, and its partitions as a correct consumer reads them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.broker import Broker
from kafkacompat.config import BrokerConfig
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.partition_reader import PartitionRead
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.testing.nasty import ExpectedRecord, NastyTopic, NastyTopics
from kafkacompat.testing.nasty.broker_access import BrokerAccess
from kafkacompat.wire.record_batch import BatchHeader, read_header, read_records, split_batches
from tests.fakes.memory_host import MemoryHost
from tests.fakes.memory_network import MemoryNetwork

START_S = 1_700_000_000
TURN_S = 0.01
TURNS = 5000
FETCH_BYTES = 1 << 20


class MemoryKafka:
    """A broker in memory whose clock turns while `call` waits."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.clock.advance(START_S)
        properties = {
            "node.id": "1",
            "listeners": "PLAINTEXT://broker:9092",
            "log.dirs": str(folder),
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            # Whatever is compacted is compacted on demand.
            "log.cleaner.backoff.ms": "3600000",
        }
        host = MemoryHost(self.clock, MemoryNetwork(self.clock).at("broker"), rng=Random(1))
        self.broker = Broker(host, BrokerConfig(properties))
        self.call(self.broker.start)
        self.nasty = NastyTopics(self, lambda: [self.broker])
        self.access = BrokerAccess(lambda: [self.broker])

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run *function*, and let time pass until its Deferred or coroutine has a result; returns that or raises."""
        started = function(*arguments)
        waiting = Deferred.fromCoroutine(started) if isinstance(started, Coroutine) else maybeDeferred(lambda: started)
        results: list[Any] = []
        waiting.addBoth(results.append)
        for _ in range(TURNS):
            if results:
                break
            self.clock.advance(TURN_S)
        assert results, "it does not end"
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return results[0]

    def partition(self, topic: str, index: int = 0) -> Partition:
        """Return a partition."""
        return self.broker.replica_manager.find(topic, index)

    def stop(self) -> None:
        """Stop the broker."""
        self.call(self.broker.stop)


def read_batches(partition: Partition) -> list[tuple[BatchHeader, bytes]]:
    """Return every batch of a log that consumers may fetch, read fetch by fetch."""
    batches: list[tuple[BatchHeader, bytes]] = []
    offset = partition.log.log_start_offset
    while offset < partition.high_watermark.offset:
        read = _read(partition, offset)
        assert isinstance(read.region, FileRegion), f"nothing to read at {offset}"
        data = read.region.pread(0, read.region.size_bytes)
        read.region.release()
        for batch in split_batches(data):
            batches.append((read_header(batch), bytes(batch)))
        offset = batches[-1][0].last_offset + 1
    return batches


def _read(partition: Partition, offset: int) -> PartitionRead:
    try:
        return partition.read(offset, FETCH_BYTES, at_least_one_batch=True)
    except ColdDataError:
        partition.warm(offset, FETCH_BYTES)
        return partition.read(offset, FETCH_BYTES, at_least_one_batch=True)


def read_as_consumer(partition: Partition, *, committed: bool) -> list[ExpectedRecord]:
    """Return the records that a consumer delivers: no markers, none before the log start, committed ones only if asked for."""
    aborted = _list_aborted(partition) if committed else []
    records = []
    for header, batch in read_batches(partition):
        if header.is_control or any(
            header.producer_id == producer_id and header.is_transactional and first <= header.base_offset < last
            for producer_id, first, last in aborted
        ):
            continue
        kind = "LogAppendTime" if header.is_log_append_time else "CreateTime"
        for record in read_records(batch):
            if record.offset >= partition.log.log_start_offset:
                headers = tuple(record.headers)
                where = (partition.index, record.offset, record.timestamp)
                records.append(ExpectedRecord(*where, record.key, record.value, headers, kind))
    return records


def _list_aborted(partition: Partition) -> list[tuple[int, int, int]]:
    """Return (producer id, first offset, marker's offset) of the aborted transactions, from the markers in the log."""
    aborted: list[tuple[int, int, int]] = []
    first_offsets: dict[int, int] = {}
    for header, batch in read_batches(partition):
        if header.is_transactional and not header.is_control:
            first_offsets.setdefault(header.producer_id, header.base_offset)
        elif header.is_control:
            (marker,) = read_records(batch)
            first = first_offsets.pop(header.producer_id, None)
            if first is not None and (marker.key or b"")[2:4] == b"\0\0":
                aborted.append((header.producer_id, first, header.base_offset))
    return aborted


def check_topic(kafka: MemoryKafka, topic: NastyTopic) -> None:
    """Compare a topic with its description, offset by offset."""
    for committed in (False, True):
        read = [
            record
            for index in topic.end_offsets
            for record in read_as_consumer(kafka.partition(topic.name, index), committed=committed)
        ]
        assert read == list(topic.expected(committed=committed))
        assert topic.list_unexplained_offsets(committed=committed) == []
    for index, end_offset in topic.end_offsets.items():
        partition = kafka.partition(topic.name, index)
        assert partition.log.log_start_offset == topic.log_start_offsets[index]
        assert partition.high_watermark.offset == partition.last_stable_offset == end_offset
    for lookup in topic.lookups:
        record = kafka.call(kafka.partition(topic.name, lookup.partition).find_timestamp, lookup.timestamp)
        assert (None if record is None else record.offset) == lookup.offset, lookup
    for index, offset in topic.max_timestamp_offsets.items():
        assert kafka.call(kafka.partition(topic.name, index).find_max_timestamp).offset == offset
