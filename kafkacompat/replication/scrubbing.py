"""Looking for bit rot: every rolled segment is read through now and then, slowly, in a process of its own.

What is found damaged is remembered by its log, told once, and answered with CORRUPT_MESSAGE from then on. How far a round
has come is not remembered over a restart: the next one begins anew.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from kafkacompat.storage.scrub import Extent, Scrubbed
from kafkacompat.storage.segment_files import LOG_SUFFIX
from kafkacompat.timers import Clock
from kafkacompat.wire.errors import KafkaError
from kafkacompat.workers.processes import ReplacedError

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.replication.partition import Partition
    from kafkacompat.replication.replica_manager import ReplicaManager
    from kafkacompat.storage.segment import Segment
    from kafkacompat.workers.processes import Workers

log = logging.getLogger(__name__)

MOST_PIECE_BYTES = 8 << 20
FIRST_DELAY_S = 60
"""A start has other things to read first."""


class Scrubbing:
    """Reads all rolled segments as often and as fast as the properties `kafkacompat.scrub.*` say."""

    def __init__(self, clock: Clock, config: BrokerConfig, replicas: ReplicaManager, workers: Workers) -> None:
        self._clock = clock
        self._replicas = replicas
        self._workers = workers
        self._interval_s = config.int("kafkacompat.scrub.interval.ms") / 1000
        self._bytes_per_second = config.int("kafkacompat.scrub.max.bytes.per.second")
        self._running: Deferred[None] | None = None

    def start(self) -> None:
        """Begin."""
        if self._interval_s >= 0:
            self._running = Deferred.fromCoroutine(self._run())
            # Once the code on the disk is another one there are no processes until the next start, which was told.
            self._running.addErrback(lambda failure: failure.trap(CancelledError, ReplacedError) and None)

    def stop(self) -> None:
        """Stop at once."""
        if self._running is not None:
            self._running.cancel()
        self._workers.close()

    async def _run(self) -> None:
        await self._wait(min(FIRST_DELAY_S, self._interval_s))
        while True:
            begun = self._clock.seconds()
            for partition in list(self._replicas):
                for segment in list(partition.log.segments):
                    if _is_rolled(partition, segment):
                        await self._scrub(partition, segment)
            await self._wait(max(begun + self._interval_s - self._clock.seconds(), 1 / 1000))

    def _wait(self, seconds: float) -> Deferred[None]:
        return deferLater(self._clock, seconds)  # type: ignore[arg-type]

    async def _scrub(self, partition: Partition, segment: Segment) -> None:
        try:
            await self._read(partition, segment)
        except (CancelledError, ReplacedError):
            raise
        except Exception as problem:
            # Compaction or retention took its file away, unless it is still there.
            if _is_rolled(partition, segment):
                defect = None if isinstance(problem, OSError | KafkaError) else problem
                path = segment.path(LOG_SUFFIX)
                log.error("%r: %s cannot be read: %s", partition, path, problem, exc_info=defect)

    async def _read(self, partition: Partition, segment: Segment) -> None:
        position, next_offset = 0, segment.base_offset
        while position < segment.size_bytes and _is_rolled(partition, segment):
            piece_bytes = min(self._bytes_per_second, MOST_PIECE_BYTES)
            extent = Extent(segment.path(LOG_SUFFIX), segment.size_bytes, partition.log.last_offset_of(segment))
            scrubbed = await self._piece(extent, position, next_offset, piece_bytes)
            if scrubbed.bad and _is_rolled(partition, segment):
                segment.remember_corrupt(scrubbed.bad)
            await self._wait((scrubbed.position - position) / self._bytes_per_second)
            position, next_offset = scrubbed.position, scrubbed.next_offset

    def _piece(self, extent: Extent, position: int, next_offset: int, max_bytes: int) -> Deferred[Scrubbed]:
        return self._workers.run(lambda call: call("scrub", extent, position, next_offset, max_bytes))


def _is_rolled(partition: Partition, segment: Segment) -> bool:
    """Whether a segment is still one of the log's and grows no more."""
    return segment.sealed and not partition.closed and segment in partition.log.segments
