"""The scrub: every rolled segment is read in the background, slowly and in a process of its own, to find damage.

The log remembers damage and logs it once; reads of damaged batches fail with CORRUPT_MESSAGE from then on. The scrub
saves how far its round has come, and where damage is. After a restart it first reads the damaged segments again, and
then continues the round: so it reaches every segment however often the broker restarts.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from kafkacompat.storage.directory.scrub_notes import BEFORE_ALL_PLACES, ScrubNotes, read_scrub_notes, write_scrub_notes
from kafkacompat.storage.segment.scrub import ScrubExtent, ScrubResult
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX
from kafkacompat.timers import Clock, now_ms, yield_unhurried
from kafkacompat.wire.errors import KafkaError
from kafkacompat.workers.processes import CodeReplacedError

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.storage.directory.scrub_notes import ScrubPlace
    from kafkacompat.storage.files.filesystem import Files
    from kafkacompat.storage.segment.segment import Segment
    from kafkacompat.workers.processes import Workers

log = logging.getLogger(__name__)

MOST_PIECE_BYTES = 8 << 20
FIRST_DELAY_S = 60
"""Time after a start before the first round: clients' reads come first."""
RETRY_S = 10
"""Time before a failed read is repeated: compaction may be renaming the file, or the process may start then."""
NOTES_PERIOD_S = 60
"""Time between two saves of the notes, unless damage is found."""


class LogScrubber:
    """Reads all rolled segments as often and as fast as the properties `kafkacompat.scrub.*` say.

    A worker's thread reads and writes its notes, which are a file in the metadata directory.
    """

    def __init__(
        self, clock: Clock, config: BrokerConfig, files: Files, replicas: ReplicaManager, workers: Workers
    ) -> None:
        self._clock = clock
        self._files = files
        self._directory = config.metadata_log_dir
        self._replicas = replicas
        self._workers = workers
        self._interval_s = config.int("kafkacompat.scrub.interval.ms") / 1000
        self._bytes_per_second = config.int("kafkacompat.scrub.max.bytes.per.second")
        self._running: Deferred[None] | None = None
        self._begun_ms = 0
        self._reached = BEFORE_ALL_PLACES
        self._noted_s = 0.0
        self.read_bytes = 0
        """Bytes that were read in search of damage."""
        self.rounds = 0
        """Rounds that have ended."""
        self._is_news = False
        """Whether damage was found that is not in the saved notes."""

    def start(self) -> None:
        """Begin, unless kafkacompat.scrub.interval.ms is negative."""
        if self._interval_s >= 0:
            self._running = Deferred.fromCoroutine(self._run())
            # When the installed code was replaced, the workers have logged that no process starts until the next start.
            self._running.addErrback(lambda failure: failure.trap(CancelledError, CodeReplacedError) and None)

    def stop(self) -> None:
        """Stop at once."""
        if self._running is not None:
            self._running.cancel()
        self._workers.close()

    async def _run(self) -> None:
        notes = await self._load_notes()
        for place in notes.damaged if notes is not None else ():
            await self._scrub_again(place)
        await self._wait(min(FIRST_DELAY_S, self._interval_s))
        self._begin_round()
        if notes is not None:
            self._begun_ms, self._reached = min(notes.begun_ms, self._begun_ms), notes.reached
        while True:
            await self._run_round()
            self.rounds += 1
            due_s = (self._begun_ms - now_ms(self._clock)) / 1000 + self._interval_s
            await self._wait(max(min(due_s, self._interval_s), 1 / 1000))
            self._begin_round()

    def _begin_round(self) -> None:
        self._begun_ms, self._reached = now_ms(self._clock), BEFORE_ALL_PLACES

    async def _run_round(self) -> None:
        """Continue from the place in the notes, in an order that is the same after a restart."""
        async for partition in yield_unhurried(
            self._clock, sorted(self._replicas, key=lambda partition: (partition.topic, partition.index))
        ):
            for segment in list(partition.log.segments):
                place = partition.topic, partition.index, segment.base_offset
                if place >= self._reached and _is_rolled(partition, segment):
                    await self._scrub(partition, segment)
                    self._reached = partition.topic, partition.index, segment.base_offset + 1
                    if self._is_news or self._clock.seconds() - self._noted_s >= NOTES_PERIOD_S:
                        await self._save_notes()
        await self._save_notes()

    async def _scrub_again(self, place: ScrubPlace) -> None:
        topic, index, offset = place
        for partition in self._replicas:
            if (partition.topic, partition.index) == (topic, index):
                segments = partition.log.segments
                segment = segments[max(0, segments.find_slot(offset))]
                if _is_rolled(partition, segment):
                    await self._scrub(partition, segment)
                return

    # Notes

    async def _load_notes(self) -> ScrubNotes | None:
        """Return the notes of the last process; None if there are none, or they cannot be read."""
        try:
            notes: ScrubNotes | None = await self._workers.run(lambda _: read_scrub_notes(self._files, self._directory))
        except OSError as problem:
            log.warning("the notes of the scrub cannot be read, so it begins a new round: %s", problem)
            return None
        return notes

    async def _save_notes(self) -> None:
        self._noted_s, self._is_news = self._clock.seconds(), False
        damaged: list[ScrubPlace] = []
        async for partition in yield_unhurried(self._clock, list(self._replicas)):
            damaged += [
                (partition.topic, partition.index, base_offset) for base_offset in partition.log.examiner.corrupt
            ]
        notes = ScrubNotes(self._begun_ms, self._reached, tuple(damaged))
        try:
            await self._workers.run(lambda _: write_scrub_notes(self._files, self._directory, notes))
        except OSError as problem:
            log.warning("the notes of the scrub cannot be written: %s", problem)

    # Segments

    def _wait(self, seconds: float) -> Deferred[None]:
        return deferLater(self._clock, seconds)  # type: ignore[arg-type]

    async def _scrub(self, partition: Partition, segment: Segment) -> None:
        for is_last in (False, True):
            try:
                await self._read(partition, segment)
                return
            except (CancelledError, CodeReplacedError):
                raise
            except Exception as problem:
                # A segment that is no longer rolled was removed by compaction or retention, and its file with it.
                if not _is_rolled(partition, segment):
                    return
                defect = None if isinstance(problem, OSError | KafkaError) else problem
                if is_last or defect is not None:
                    path = segment.files.path(LOG_SUFFIX)
                    log.error("%r: %s cannot be read: %s", partition, path, problem, exc_info=defect)
                    return
            await self._wait(RETRY_S)

    async def _read(self, partition: Partition, segment: Segment) -> None:
        position, next_offset = 0, segment.base_offset
        while position < segment.size_bytes and _is_rolled(partition, segment):
            piece_bytes = min(self._bytes_per_second, MOST_PIECE_BYTES)
            extent = ScrubExtent(
                segment.files.path(LOG_SUFFIX), segment.size_bytes, partition.log.examiner.last_offset_of(segment)
            )
            scrubbed = await self._scrub_piece(extent, position, next_offset, piece_bytes)
            if scrubbed.bad and _is_rolled(partition, segment):
                segment.remember_corrupt(scrubbed.bad)
                self._is_news = True
            self.read_bytes += scrubbed.position - position
            await self._wait((scrubbed.position - position) / self._bytes_per_second)
            position, next_offset = scrubbed.position, scrubbed.next_offset

    def _scrub_piece(
        self, extent: ScrubExtent, position: int, next_offset: int, max_bytes: int
    ) -> Deferred[ScrubResult]:
        return self._workers.run(lambda call: call("scrub", extent, position, next_offset, max_bytes))


def _is_rolled(partition: Partition, segment: Segment) -> bool:
    """Return whether a segment is still in the log and no longer grows."""
    return segment.sealed and not partition.closed and segment in partition.log.segments
