"""A coordinator's topic as it lies in this broker's own partitions."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import batches, crc_matches, read_header

if TYPE_CHECKING:
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.storage.log.log import Log
    from kafkacompat.storage.producers.verification import Guard
    from kafkacompat.wire.primitives import Buffer

log = logging.getLogger(__name__)

PIECE_BYTES = 256 * 1024


class ReplicatedLog:
    """See `CoordinatorLog`. ``partitions_if_new`` is how many the topic gets when it is made."""

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
            found = self._replicas.find(self.topic, partition)
            result = found.append(batch, now_ms(self._clock), from_client=False, guard=guard)
        except KafkaError as problem:
            return fail(problem)
        return result.addCallback(lambda _: None) if isinstance(result, Deferred) else succeed(None)

    def read(self, partition: int) -> Iterator[Buffer]:
        """See CoordinatorLog; reading happens while the partition is being loaded and may wait for the disk.

        Batches that are damaged are left out: what was written of the same keys before counts again.
        """
        found = self._replicas.find(self.topic, partition)
        offset, examined = found.log.log_start_offset, -1
        while True:
            begin = offset
            # The log may be another one each time: the partition may move to another directory meanwhile.
            try:
                piece = _read(found.log, offset)
                if piece is None:
                    return
                for batch in _sound(piece, offset, found.log.log_end_offset):
                    offset = read_header(batch).last_offset + 1
                    yield batch
            except CorruptDataError as problem:
                if problem.behind is not None:
                    offset = problem.behind
                    log.error("%r: the records from %d to %d are lost to damage", found, begin, offset - 1)
            if offset == begin:
                if examined == offset:
                    raise MalformedError(f"{self.topic}-{partition} cannot be read at offset {offset}")
                examined = offset
                found.log.examiner.examine_and_reindex(found.log.segments[max(0, found.log.segments.floor(offset))])


def _read(found: Log, offset: int) -> bytes | None:
    region = found.read(offset, PIECE_BYTES)
    if region is None:
        return None
    try:
        return region.pread(0, region.size_bytes)
    finally:
        region.release()


def _sound(piece: bytes, offset: int, end_offset: int) -> Iterator[memoryview]:
    """The whole batches up to the first one that is damaged; the first one holds *offset* or follows it."""
    try:
        for batch in batches(piece):
            header = read_header(batch)
            # No checksum covers the base offset.
            if not offset <= header.last_offset < end_offset or not crc_matches(batch, header):
                return
            yield batch
            offset = header.last_offset + 1
    except MalformedError:
        return
