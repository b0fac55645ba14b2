"""A coordinator's topic in this broker's own partitions."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import crc_matches, read_header, split_batches

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.storage.log.log import Log
    from kafkacompat.storage.producers.verification import Guard
    from kafkacompat.wire.primitives import Buffer

log = logging.getLogger(__name__)

PIECE_BYTES = 256 * 1024


class ReplicatedLog:
    """Implements `CoordinatorLog`. The topic is created with ``partitions_if_new`` partitions."""

    def __init__(
        self, topic: str, replicas: ReplicaManager, metadata: ImageHolder, clock: Clock, partitions_if_new: int
    ) -> None:
        self.topic = topic
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._partitions_if_new = partitions_if_new

    @property
    def partition_count(self) -> int:
        """See CoordinatorLog."""
        topic = self._metadata.image.topics.get(self.topic)
        return len(topic.partitions) if topic is not None else self._partitions_if_new

    def append(self, partition: int, batch: bytes, guard: Guard | None = None) -> Deferred[None]:
        """See CoordinatorLog."""
        try:
            replica = self._replicas.find(self.topic, partition)
            result = replica.append_to_all(batch, now_ms(self._clock), from_client=False, guard=guard)
        except KafkaError as problem:
            return fail(problem)
        return result.addCallback(lambda _: None) if isinstance(result, Deferred) else succeed(None)

    def read(self, partition: int) -> Iterator[Buffer]:
        """See CoordinatorLog. Reading happens while the partition is being loaded and may wait for the disk.

        Damaged batches are left out: the values that their keys had before count again.
        """
        replica = self._replicas.find(self.topic, partition)
        # Later batches are not for a coordinator that is only being elected.
        end_offset = replica.log.log_end_offset
        offset, examined = replica.log.log_start_offset, -1
        while offset < end_offset:
            begin = offset
            # `replica.log` may be another object each time: the partition may move to another directory meanwhile.
            try:
                piece = _read_piece(replica.log, offset)
                if piece is None:
                    return
                for batch in _sound_batches(piece, offset, end_offset):
                    offset = read_header(batch).last_offset + 1
                    yield batch
            except CorruptDataError as problem:
                if problem.next_offset is not None:
                    offset = problem.next_offset
                    log.error("%r: records %d to %d are lost to damage", replica, begin, offset - 1)
            if offset == begin:
                if examined == offset:
                    raise MalformedError(f"{self.topic}-{partition} cannot be read at offset {offset}")
                examined = offset
                replica.log.examiner.examine_and_reindex(
                    replica.log.segments[max(0, replica.log.segments.find_slot(offset))]
                )

    def wait_until_committed(self, partition: int) -> Deferred[None]:
        """See CoordinatorLog. A partition without other replicas is not waited for: no other log may replace its own."""
        try:
            replica = self._replicas.find(self.topic, partition)
        except KafkaError as problem:
            return fail(problem)
        if replica.is_leader and not replica.is_replicated:
            return succeed(None)
        return _wait_until_replicated(replica, replica.log.log_end_offset)


def _wait_until_replicated(replica: Partition, end_offset: int) -> Deferred[None]:
    """Wait for the in-sync replicas, also while there are fewer of them than min.insync.replicas requires."""

    def wait_again(failure: Failure) -> Deferred[None]:
        if isinstance(failure.value, KafkaError) and failure.value.code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            return _wait_until_replicated(replica, end_offset)
        failure.raiseException()

    waiting = replica.wait_for_replicas(end_offset)
    return succeed(None) if waiting is None else waiting.addErrback(wait_again)


def _read_piece(log_to_read: Log, offset: int) -> bytes | None:
    region = log_to_read.read(offset, PIECE_BYTES)
    if region is None:
        return None
    try:
        return region.pread(0, region.size_bytes)
    finally:
        region.release()


def _sound_batches(piece: bytes, offset: int, end_offset: int) -> Iterator[memoryview]:
    """Yield the complete batches before the first damaged one. The first batch has to contain *offset* or follow it."""
    try:
        for batch in split_batches(piece):
            header = read_header(batch)
            # No checksum covers the base offset.
            if not offset <= header.last_offset < end_offset or not crc_matches(batch, header):
                return
            yield batch
            offset = header.last_offset + 1
    except MalformedError:
        return
