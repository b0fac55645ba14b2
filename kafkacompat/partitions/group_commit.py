"""Group commit: what waits for the disk is synced together, one round after the other.

A round, in the threads of the log directory, syncs every log that was written to since the round before. What is appended
meanwhile gathers for the next one, which begins when the round is over; the first begins at the end of the reactor's turn, so
that all batches of one request, and of all clients heard in that turn, are in it. With nothing to do there is no timer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from twisted.internet.defer import Deferred, succeed

from kafkacompat.storage.log.log import Log, OffsetPosition
from kafkacompat.storage.log.state import is_transient

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.disk import Disk
    from kafkacompat.timers import Clock, DelayedCall

log = logging.getLogger(__name__)

PATIENCE_S = 1.0
"""No round takes so long, unless something is wrong with the disk; one that was put off is tried again after it."""


class Committed(Protocol):
    """A partition, as far as its group commit knows it."""

    @property
    def log(self) -> Log:
        """The log that is synced."""

    def synced(self, end: OffsetPosition) -> None:
        """Everything before *end* is on the disk."""


class _Share(NamedTuple):
    """What a round does for one partition."""

    partition: Committed
    log: Log
    end: OffsetPosition


class GroupCommit:
    """The rounds of one log directory.

    With ``always`` every append waits for its round (kafkacompat.acks.after=fsync), else only those that flush.messages
    asks for. ``failed`` is told when a sync failed: the directory goes offline with everybody who waits, and the sync is
    never tried again, for the kernel may have dropped what it could not write. A round that did not come to a sync, because
    there was no room for the indexes of a segment that was rolled, or no file could be opened, is made again.
    """

    def __init__(self, disk: Disk, clock: Clock, failed: Callable[[BaseException], None], always: bool = False) -> None:
        self.always = always
        self.rounds = 0
        """How many rounds have begun."""
        self._disk = disk
        self._clock = clock
        self._failed = failed
        self._joined: dict[Committed, None] = {}
        self._under_way: dict[Committed, None] = {}
        self._is_busy = False
        self._begun_s = 0.0
        self._is_put_off = False
        self._again: DelayedCall | None = None
        self._finishing: list[Deferred[None]] = []

    def join(self, partition: Committed) -> None:
        """Take a partition into the next round: something was appended to it."""
        self._joined[partition] = None
        if not self._is_busy:
            self._is_busy = True
            self._begun_s = self._clock.seconds()
            self._clock.callLater(0, self._begin)

    def leave(self, partition: Committed) -> None:
        """Forget a partition, which is deleted, moved or offline; `synced` is not called any more for the log it has now."""
        self._joined.pop(partition, None)
        self._under_way.pop(partition, None)

    @property
    def is_slow(self) -> bool:
        """Whether the round under way takes unusually long."""
        return self._is_put_off or (self._is_busy and self._clock.seconds() - self._begun_s > PATIENCE_S)

    def finish(self) -> Deferred[None]:
        """Fires when there is nothing to be synced any more."""
        if not self._is_busy:
            return succeed(None)
        finished: Deferred[None] = Deferred()
        self._finishing.append(finished)
        if self._again is not None and self._again.active():
            self._again.reset(0)
        return finished

    def _begin(self) -> None:
        # The ends are taken here, in the reactor thread: in the disk thread they would be those of half an append.
        shares = [_Share(each, each.log, each.log.end_position()) for each in self._joined]
        self._under_way, self._joined = self._joined, {}
        if not shares:
            self._rest()
            return
        self.rounds += 1
        self._begun_s = self._clock.seconds()
        syncing = self._disk.run_each(Log.flush, [each.log for each in shares])
        syncing.addCallbacks(self._synced, self._not_synced, callbackArgs=(shares,))

    def _synced(self, _: None, shares: Sequence[_Share]) -> None:
        self._is_put_off = False
        goes_on = bool(self._joined)
        if goes_on:
            self._begin()  # the disk is busy while the answers leave
        for partition, synced, end in shares:
            # It may live in another directory by now, where everything that was appended here was synced too.
            if partition.log is synced:
                partition.synced(end)
        if not goes_on:
            self._begin()

    def _not_synced(self, failure: Failure) -> None:
        problem = failure.value
        assert problem is not None
        if not self._finishing and isinstance(problem.__cause__, OSError) and is_transient(problem.__cause__):
            self._put_off(problem)
            return
        self._joined.clear()
        self._failed(problem)
        self._rest()

    def _put_off(self, problem: BaseException) -> None:
        """Let everybody go on waiting, who is still there."""
        if not self._is_put_off:
            log.warning("what waits for a sync goes on waiting: %s", problem)
        self._is_put_off = True
        self._joined = {**self._under_way, **self._joined}
        self._again = self._clock.callLater(PATIENCE_S, self._begin)

    def _rest(self) -> None:
        self._is_busy = self._is_put_off = False
        finishing, self._finishing = self._finishing, []
        for each in finishing:
            each.callback(None)
