"""Moving partitions between log directories: a log serves while it is copied, and then the copy replaces it.

The copy is made in steps, in the thread of the target directory. Appends wait in line during the last step. When that
is on the disk the partition uses the copy, and its old log is deleted. A crash leaves either the old log and an
incomplete copy, which the next start removes, or two whole logs: then the next start takes the newer one.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from twisted.internet.defer import CancelledError, Deferred, DeferredList, DeferredLock, succeed

from kafkacompat.disk import do_nothing
from kafkacompat.partitions.directories import Directories, Directory
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.log.copy import CopySourceError
from kafkacompat.storage.log.state import is_transient
from kafkacompat.storage.log_config import LONG_MAX
from kafkacompat.timers import Clock
from kafkacompat.upkeep.pacing import InterruptibleWait
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafkacompat.storage.log.log import Log

log = logging.getLogger(__name__)

Result = TypeVar("Result")

STEP_BYTES = 4 << 20
"""Bytes that a step copies at most: the directory's other partitions wait for it when they need a segment."""

PAUSE_BELOW_BYTES = 1 << 20
"""Appends may be paused when less than this is left to copy."""

UNLIMITED = LONG_MAX
"""The rate, in bytes a second, that stands for no limit."""


class MoveEndedError(Exception):
    """A move is over before its copy was complete."""


class PartitionMoveTask:
    """The move of one partition from its directory to another.

    ``begun`` fires when the copy's folder exists, or fails; ``ended`` fires when nothing is left to do. ``turns`` is
    the lock that lets one step of one move to a directory run at a time.
    """

    def __init__(
        self, partition: Partition, source: Directory, target: Directory, turns: DeferredLock, clock: Clock
    ) -> None:
        self.partition = partition
        self.source = source
        self.target = target
        self.copy = target.storage.new_copy(partition.log)
        self.begun: Deferred[None] = Deferred()
        self.ended: Deferred[None] = Deferred()
        self.cancelled = False
        self.stopped = False
        self._paused = False
        self._turns = turns
        self._waiting: Deferred[DeferredLock] | None = None
        self._rest = InterruptibleWait(clock)

    @property
    def offset_lag(self) -> int:
        """How many offsets the copy lacks, at most."""
        return self.partition.log.log_end_offset - self.copy.end_offset

    @property
    def is_over(self) -> bool:
        """Whether no further step may follow."""
        return self.cancelled or self.stopped or self.partition.closed or self.target.offline

    def resume(self) -> None:
        """Make the appends that wait in line for this move."""
        if self._paused:
            self._paused = False
            self.partition.resume()

    async def run(self, rate: Callable[[], int]) -> Log | None:
        """Make and adopt the copy; return it with appends paused, or None when the move is over without one.

        ``rate`` returns how many bytes a second may be copied at the moment.
        """
        try:
            await self._run_in_turn(lambda: self.target.disk.run(self.copy.create))
            self.begun.callback(None)
            if not self.is_over:
                # The copy takes the transaction indexes as they are, so damaged ones are rebuilt first.
                await self._run_in_turn(
                    lambda: self.source.disk.run(self.partition.log.committed.write_transaction_index)
                )
            while not self.is_over:
                bytes_per_second = max(rate(), 1)
                moved, copied_bytes = await self._run_in_turn(partial(self._run_step, bytes_per_second))
                if moved is not None:
                    return moved
                if bytes_per_second < UNLIMITED:
                    await self._rest.begin(copied_bytes / bytes_per_second)
        except MoveEndedError:
            if not self.begun.called:
                refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the move of {self.partition!r} was cancelled")
                self.begun.errback(refusal)
        except Exception as problem:
            self._on_failure(problem)
        return None

    async def _run_in_turn(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Run one step while no other move to the directory does: an append that needs a segment waits for one step."""
        self._waiting = self._turns.acquire()
        try:
            await self._waiting
        except CancelledError:
            raise MoveEndedError from None
        try:
            if self.is_over:
                # Each move ends in a turn of its own: a directory that fails ends thousands of moves.
                await self.source.disk.run(do_nothing)
                raise MoveEndedError
            return await work()
        finally:
            self._turns.release()

    async def _run_step(self, bytes_per_second: int) -> tuple[Log | None, int]:
        """Copy some bytes, or adopt the copy; return the adopted copy, and the bytes that the step copied at most."""
        if self.copy.count_remaining_bytes() > PAUSE_BELOW_BYTES:
            step_bytes = min(STEP_BYTES, bytes_per_second)  # a cancelled move ends after its step
            self.target.space.reserve(step_bytes)
            await self.target.disk.run(self.copy.advance, self.copy.list_extents(), step_bytes)
            return None, step_bytes
        if self.partition.pause():
            self._paused = True
            high_watermark = self.partition.high_watermark.offset
            return await self.target.disk.run(self.target.storage.adopt, self.copy, high_watermark), 0
        # A segment is being made: try again after that.
        await self.source.disk.run(do_nothing)
        return None, 0

    def stop_waiting(self) -> None:
        """End the current wait, so that the move notices that it is over."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._rest.end()

    def _on_failure(self, problem: Exception) -> None:
        if not self.begun.called:
            self.begun.errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, describe_error(problem)))
        if self.partition.closed:
            return  # the partition was deleted, so its files may be gone
        log.error("%r cannot be moved to %s: %s", self.partition, self.target.path, problem)
        if isinstance(problem, CopySourceError):
            self.source.report_failure(problem)
        elif isinstance(problem, OSError) and not is_transient(problem):
            self.target.report_failure(problem)


class PartitionMoves:
    """The moves under way, at most one for each partition.

    ``rate`` returns how many bytes a second each move may copy.
    """

    def __init__(self, directories: Directories, clock: Clock, rate: Callable[[], int] = lambda: UNLIMITED) -> None:
        self.rate = rate
        self.quiet: Callable[[Partition], Deferred[None]] = lambda _: succeed(None)
        """Stops whatever changes a partition's log, except appends, until its move is over; the log cleaner sets it."""
        self._directories = directories
        self._clock = clock
        self._moves: dict[tuple[str, int], PartitionMoveTask] = {}
        self._turns: defaultdict[Directory, DeferredLock] = defaultdict(DeferredLock)

    def __iter__(self) -> Iterator[PartitionMoveTask]:
        return iter(list(self._moves.values()))

    def request(self, partition: Partition, target: Directory) -> None:
        """Begin as `start` does; a failure is logged."""
        self.start(partition, target).addErrback(lambda failure: log.error("%s", failure.value))

    def start(self, partition: Partition, target: Directory) -> Deferred[None]:
        """Move a partition to a directory, instead of any move under way; fires when the copy has begun.

        Does nothing when the partition is in that directory or is being moved there. Fails with KafkaError
        KAFKA_STORAGE_ERROR.
        """
        name = (partition.topic, partition.index)
        current = self._moves.get(name)
        if current is not None and current.target is target and not current.cancelled:
            return succeed(None)
        cancelling = self.cancel(name)
        begun: Deferred[None] = Deferred()
        cancelling.addCallback(lambda _: self._start(partition, target)).chainDeferred(begun)
        return begun

    def _start(self, partition: Partition, target: Directory) -> Deferred[None]:
        name = (partition.topic, partition.index)
        home = self._directories.find_home(name)
        if home is None or partition.closed:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition!r} was deleted")
        if name in self._moves:
            return self.start(partition, target)
        if home is target:
            return succeed(None)
        if any(directory.offline for directory in self._directories):
            reason = "a log directory is offline: nothing is moved until all of them work"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        move = self._moves[name] = PartitionMoveTask(partition, home, target, self._turns[target], self._clock)
        begun: Deferred[None] = Deferred()
        move.begun.chainDeferred(begun)
        Deferred.fromCoroutine(self._run(name, move)).addErrback(
            lambda failure: log.error("moving %r failed", partition, exc_info=failure.value)
        )
        return begun

    async def _run(self, name: tuple[str, int], move: PartitionMoveTask) -> None:
        try:
            await self.quiet(move.partition)
            moved = await move.run(self.rate)
            if moved is not None and not (move.cancelled or move.partition.closed or move.target.offline):
                await self._swap(name, move, moved)
            else:
                move.resume()
                await self._remove_copy(move, moved)
        finally:
            move.resume()
            del self._moves[name]
            move.ended.callback(None)

    async def _remove_copy(self, move: PartitionMoveTask, moved: Log | None) -> None:
        """Remove the copy; that of a stopped move stays, so that the next start begins the move again."""
        if move.target.offline:
            return
        storage = move.target.storage
        if moved is not None and move.cancelled:
            await move.target.disk.run(storage.delete_log, moved)
            move.target.remove_deleted_later(move.partition.log.config.file_delete_delay_ms)
        elif moved is not None:
            # The source directory failed at the last moment: the copy may be the only whole log left.
            await move.target.disk.run(moved.release)
        elif not move.stopped:
            await move.target.disk.run(storage.discard, move.copy)

    async def _swap(self, name: tuple[str, int], move: PartitionMoveTask, moved: Log) -> None:
        """Let the partition use the copy, and delete the log that was copied."""
        partition, old, target = move.partition, move.partition.log, move.target
        partition.replace_log(moved, target)
        self._directories.forget(name)
        self._directories.note_partition(name, target)
        log.info("%r moved to %s", partition, target.path)
        # Where records were deleted meanwhile, both logs have that log start offset while both exist.
        await target.disk.run(target.storage.save_log_start_offset, moved)
        move.resume()
        try:
            await move.source.disk.run(move.source.storage.delete_log, old)
        except OSError as problem:
            move.source.report_failure(problem)
        else:
            move.source.remove_deleted_later(partition.log.config.file_delete_delay_ms)

    def cancel(self, name: tuple[str, int]) -> Deferred[None]:
        """Cancel a partition's move, if there is one; fires when nothing of it is left. The move may have succeeded."""
        move = self._moves.get(name)
        if move is None:
            return succeed(None)
        move.cancelled = True
        move.stop_waiting()
        return _follow_event(move.ended)

    def stop(self) -> Deferred[None]:
        """Take no further steps; fires when none is under way. The next start begins the moves again."""
        for move in self:
            move.stopped = True
            move.stop_waiting()
        return DeferredList([_follow_event(move.ended) for move in self]).addCallback(lambda _: None)


def _follow_event(event: Deferred[None]) -> Deferred[None]:
    """Return another Deferred that fires with *event*."""
    fired: Deferred[None] = Deferred()
    event.addCallback(lambda _: fired.callback(None))
    return fired
