"""The offsets topic as it lies in this broker's own partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.groups.offsets_log import OFFSETS_TOPIC
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import batches, read_header

if TYPE_CHECKING:
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.replication.replica_manager import ReplicaManager
    from kafkacompat.wire.primitives import Buffer

PIECE_BYTES = 256 * 1024


class ReplicatedOffsetsLog:
    """See `OffsetsLog`. ``partitions_if_new`` is `offsets.topic.num.partitions`."""

    def __init__(self, replicas: ReplicaManager, metadata: ImageHolder, clock: Clock, partitions_if_new: int) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._partitions_if_new = partitions_if_new

    @property
    def partition_count(self) -> int:
        """See OffsetsLog."""
        topic = self._metadata.image.topics.get(OFFSETS_TOPIC)
        return len(topic.partitions) if topic is not None else self._partitions_if_new

    def append(self, partition: int, batch: bytes) -> Deferred[None]:
        """See OffsetsLog."""
        try:
            found = self._replicas.find(OFFSETS_TOPIC, partition)
            result = found.append(batch, now_ms(self._clock), from_client=False)
        except KafkaError as problem:
            return fail(problem)
        return result.addCallback(lambda _: None) if isinstance(result, Deferred) else succeed(None)

    def read(self, partition: int) -> Iterator[Buffer]:
        """See OffsetsLog; reading happens while the partition is being loaded and may wait for the disk."""
        found = self._replicas.find(OFFSETS_TOPIC, partition)
        offset = found.log.log_start_offset
        while True:
            # The log may be another one each time: the partition may move to another directory meanwhile.
            region = found.log.read(offset, PIECE_BYTES)
            if region is None:
                return
            try:
                piece = region.pread(0, region.size_bytes)
            finally:
                region.release()
            begin = offset
            for batch in batches(piece):
                offset = read_header(batch).last_offset + 1
                yield batch
            if offset == begin:
                raise MalformedError(f"{OFFSETS_TOPIC}-{partition} has no whole batch at offset {offset}")
