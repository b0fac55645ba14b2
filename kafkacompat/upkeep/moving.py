"""Moving live partitions between log directories: copied while they go on, and swapped in when nothing is missing.

The copy is made in steps, in the thread of the directory that it is made in. For the last one appends wait in line;
when it is on the disk the partition goes on with the copy, and the log it had is deleted. A crash leaves the old log
with a copy beside it, which counts for nothing, or two whole logs, of which the start takes the newer one.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from twisted.internet.defer import CancelledError, Deferred, DeferredList, DeferredLock, succeed

from kafkacompat.disk import nothing
from kafkacompat.partitions.directories import Directories, Directory
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log.copy import SourceError
from kafkacompat.storage.log.state import is_transient
from kafkacompat.storage.log_config import LONG_MAX
from kafkacompat.timers import Clock
from kafkacompat.upkeep.pacing import Rest
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafkacompat.storage.log.log import Log

log = logging.getLogger(__name__)

Result = TypeVar("Result")

STEP_BYTES = 4 << 20
"""What a step copies at most: the directory's other partitions wait for it when they need a segment."""

PAUSE_BELOW_BYTES = 1 << 20
"""With so little left appends may be paused."""

UNLIMITED = LONG_MAX
"""The rate, in bytes a second, that is none."""


class GivenUpError(Exception):
    """A move is over before it came to its end."""


class Move:
    """One partition on its way from its directory to another.

    ``begun`` fires when the copy's folder is there, or fails; ``ended`` when nothing is left to do. One step of one
    move to a directory is made at a time, which ``turns`` sees to.
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
        self._rest = Rest(clock)

    @property
    def offset_lag(self) -> int:
        """How many offsets the copy is behind, at most."""
        return self.partition.log.log_end_offset - self.copy.end_offset

    @property
    def is_over(self) -> bool:
        """Whether no further step shall be made."""
        return self.cancelled or self.stopped or self.partition.closed or self.target.offline

    def resume(self) -> None:
        """Serve the appends that wait for this move."""
        if self._paused:
            self._paused = False
            self.partition.resume()

    async def run(self, rate: Callable[[], int]) -> Log | None:
        """Make and adopt the copy; returns it with appends paused, or None when it came to nothing.

        ``rate`` tells how many bytes a second may be copied at the moment.
        """
        try:
            await self._in_turn(lambda: self.target.disk.run(self.copy.create))
            self.begun.callback(None)
            if not self.is_over:
                # What has rotted of the transaction indexes is built again: the copy takes them as they are.
                await self._in_turn(lambda: self.source.disk.run(self.partition.log.committed.write_transaction_index))
            while not self.is_over:
                bytes_per_second = max(rate(), 1)
                moved, copied_bytes = await self._in_turn(partial(self._step, bytes_per_second))
                if moved is not None:
                    return moved
                if bytes_per_second < UNLIMITED:
                    await self._rest.begin(copied_bytes / bytes_per_second)
        except GivenUpError:
            if not self.begun.called:
                refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the move of {self.partition!r} was given up")
                self.begun.errback(refusal)
        except Exception as problem:
            self._failed(problem)
        return None

    async def _in_turn(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Work for a moment, and let the others in between: those who need a segment wait for one step only."""
        self._waiting = self._turns.acquire()
        try:
            await self._waiting
        except CancelledError:
            raise GivenUpError from None
        try:
            if self.is_over:
                # Each in a turn of the reactor of its own: a directory that fails ends thousands.
                await self.source.disk.run(nothing)
                raise GivenUpError
            return await work()
        finally:
            self._turns.release()

    async def _step(self, bytes_per_second: int) -> tuple[Log | None, int]:
        """Copy some bytes, and tell how many at most, or adopt the copy."""
        if self.copy.left_bytes() > PAUSE_BELOW_BYTES:
            step_bytes = min(STEP_BYTES, bytes_per_second)  # the end of a move that is given up waits for a step
            self.target.space.take(step_bytes)
            await self.target.disk.run(self.copy.advance, self.copy.extents(), step_bytes)
            return None, step_bytes
        if self.partition.pause():
            self._paused = True
            return await self.target.disk.run(self.target.storage.adopt, self.copy), 0
        # Behind the segment that is being made.
        await self.source.disk.run(nothing)
        return None, 0

    def stop_waiting(self) -> None:
        """Notice at once that the move is over."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._rest.end()

    def _failed(self, problem: Exception) -> None:
        if not self.begun.called:
            self.begun.errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(problem)))
        if self.partition.closed:
            return  # what was deleted need not be readable
        log.error("%r cannot be moved to %s: %s", self.partition, self.target.path, problem)
        if isinstance(problem, SourceError):
            self.source.failed(problem)
        elif isinstance(problem, OSError) and not is_transient(problem):
            self.target.failed(problem)


class Moves:
    """The partitions that are being moved, one move at a time each.

    ``rate`` is what each may copy, in bytes a second.
    """

    def __init__(self, directories: Directories, clock: Clock, rate: Callable[[], int] = lambda: UNLIMITED) -> None:
        self.rate = rate
        self.quiet: Callable[[Partition], Deferred[None]] = lambda _: succeed(None)
        """Has to see to it that nothing but appends changes a partition's log until its move is over."""
        self._directories = directories
        self._clock = clock
        self._moves: dict[tuple[str, int], Move] = {}
        self._turns: defaultdict[Directory, DeferredLock] = defaultdict(DeferredLock)

    def __iter__(self) -> Iterator[Move]:
        return iter(list(self._moves.values()))

    def request(self, partition: Partition, target: Directory) -> None:
        """As `start`, for nobody who waits."""
        self.start(partition, target).addErrback(lambda failure: log.error("%s", failure.getErrorMessage()))

    def start(self, partition: Partition, target: Directory) -> Deferred[None]:
        """Bring a partition to a directory, in place of where it was going; fires when that has begun.

        Fails with KafkaError KAFKA_STORAGE_ERROR; nothing is to be done when it lives or goes there already.
        """
        name = (partition.topic, partition.index)
        going = self._moves.get(name)
        if going is not None and going.target is target and not going.cancelled:
            return succeed(None)
        given_up = self.cancel(name)
        begun: Deferred[None] = Deferred()
        given_up.addCallback(lambda _: self._start(partition, target)).chainDeferred(begun)
        return begun

    def _start(self, partition: Partition, target: Directory) -> Deferred[None]:
        name = (partition.topic, partition.index)
        home = self._directories.home(name)
        if home is None or partition.closed:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition!r} was deleted")
        if name in self._moves:
            return self.start(partition, target)
        if home is target:
            return succeed(None)
        if any(each.offline for each in self._directories):
            reason = "a log directory is offline: nothing is moved until all of them work"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        move = self._moves[name] = Move(partition, home, target, self._turns[target], self._clock)
        begun: Deferred[None] = Deferred()
        move.begun.chainDeferred(begun)
        Deferred.fromCoroutine(self._run(name, move)).addErrback(
            lambda failure: log.error("moving %r failed", partition, exc_info=failure.value)
        )
        return begun

    async def _run(self, name: tuple[str, int], move: Move) -> None:
        try:
            await self.quiet(move.partition)
            moved = await move.run(self.rate)
            if moved is not None and not (move.cancelled or move.partition.closed or move.target.offline):
                await self._swap(name, move, moved)
            else:
                move.resume()
                await self._give_up(move, moved)
        finally:
            move.resume()
            del self._moves[name]
            move.ended.callback(None)

    async def _give_up(self, move: Move, moved: Log | None) -> None:
        """Remove the copy; one that is only stopped stays, to tell the next start that it is wanted."""
        if move.target.offline:
            return
        storage = move.target.storage
        if moved is not None and move.cancelled:
            await move.target.disk.run(storage.delete_log, moved)
            move.target.remove_deleted_later(move.partition.log.config.file_delete_delay_ms)
        elif moved is not None:
            # The directory that it was to leave failed in the last instant: this may be the only whole log there is.
            await move.target.disk.run(moved.release)
        elif not move.stopped:
            await move.target.disk.run(storage.discard, move.copy)

    async def _swap(self, name: tuple[str, int], move: Move, moved: Log) -> None:
        """Go on with the copy, and delete the log that was copied."""
        partition, old, target = move.partition, move.partition.log, move.target
        partition.replace_log(moved, target)
        self._directories.forget(name)
        self._directories.found(name, target)
        log.info("%r moved to %s", partition, target.path)
        # Should records have been deleted meanwhile, both logs say so while there are both.
        await target.disk.run(target.storage.save_log_start_offset, moved)
        move.resume()
        try:
            await move.source.disk.run(move.source.storage.delete_log, old)
        except OSError as problem:
            move.source.failed(problem)
        else:
            move.source.remove_deleted_later(partition.log.config.file_delete_delay_ms)

    def cancel(self, name: tuple[str, int]) -> Deferred[None]:
        """Give up a move; fires when nothing of it is left. It may have been too late."""
        move = self._moves.get(name)
        if move is None:
            return succeed(None)
        move.cancelled = True
        move.stop_waiting()
        return _when(move.ended)

    def stop(self) -> Deferred[None]:
        """Make no further steps; fires when none is under way. The next start begins again."""
        for move in self:
            move.stopped = True
            move.stop_waiting()
        return DeferredList([_when(move.ended) for move in self]).addCallback(lambda _: None)


def _when(event: Deferred[None]) -> Deferred[None]:
    """Another Deferred that fires with this one."""
    fired: Deferred[None] = Deferred()
    event.addCallback(lambda _: fired.callback(None))
    return fired
