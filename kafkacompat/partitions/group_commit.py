"""Group commit: appends that wait for the disk are synced together, one round after the other.

A round runs in the threads of the log directory and syncs every log that was written to since the round before. Appends
made meanwhile wait for the next round, which begins when this one ends. The first round begins at the end of the
reactor's turn, so that it includes all batches of one request, and those of all clients served in that turn. An idle
directory has no timer.
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
"""A round that takes longer is slow: the disk may be failing. A postponed round is repeated after this time."""


class SyncedPartition(Protocol):
    """A partition, as its group commit sees it."""

    @property
    def log(self) -> Log:
        """The log that is synced."""

    def synced(self, end: OffsetPosition) -> None:
        """Take note that everything before *end* is on the disk."""


class _Share(NamedTuple):
    """One partition in a round, its log, and the end of the log when the round began."""

    partition: SyncedPartition
    log: Log
    end: OffsetPosition


class GroupCommit:
    """The rounds of one log directory.

    With ``always`` every append waits for its round (kafkacompat.acks.after=fsync), else only those that flush.messages
    asks for. ``failed`` is called when a sync fails: the directory goes offline, every waiting append fails, and the
    sync is never tried again, because the kernel may have dropped what it could not write. A round that fails before
    its sync is repeated: there was no space for the indexes of a rolled segment, or no file could be opened.
    """

    def __init__(self, disk: Disk, clock: Clock, failed: Callable[[BaseException], None], always: bool = False) -> None:
        self.always = always
        self.rounds = 0
        """How many rounds have begun."""
        self.busy_s = 0.0
        """Seconds that the rounds have taken together."""
        self._disk = disk
        self._clock = clock
        self._failed = failed
        self._joined: dict[SyncedPartition, None] = {}
        self._under_way: dict[SyncedPartition, None] = {}
        self._is_busy = False
        self._begun_s = 0.0
        self._is_postponed = False
        self._again: DelayedCall | None = None
        self._finishing: list[Deferred[None]] = []

    def join(self, partition: SyncedPartition) -> None:
        """Add a partition to the next round: its log was appended to."""
        self._joined[partition] = None
        if not self._is_busy:
            self._is_busy = True
            self._begun_s = self._clock.seconds()
            self._clock.callLater(0, self._begin_round)

    def leave(self, partition: SyncedPartition) -> None:
        """Forget a partition that is deleted, moved or offline. A round in flight may still call `synced` for its log."""
        self._joined.pop(partition, None)
        self._under_way.pop(partition, None)

    @property
    def is_slow(self) -> bool:
        """Whether the current round has lasted longer than PATIENCE_S, or was postponed."""
        return self._is_postponed or (self._is_busy and self._clock.seconds() - self._begun_s > PATIENCE_S)

    def finish(self) -> Deferred[None]:
        """Return a Deferred that fires when nothing is left to sync."""
        if not self._is_busy:
            return succeed(None)
        finished: Deferred[None] = Deferred()
        self._finishing.append(finished)
        if self._again is not None and self._again.active():
            self._again.reset(0)
        return finished

    def _begin_round(self) -> None:
        # The reactor thread notes the ends: the disk thread could see the end of half an append.
        shares = [_Share(partition, partition.log, partition.log.end_position()) for partition in self._joined]
        self._under_way, self._joined = self._joined, {}
        if not shares:
            self._rest()
            return
        self.rounds += 1
        self._begun_s = self._clock.seconds()
        syncing = self._disk.run_each(Log.flush, [share.log for share in shares])
        syncing.addCallbacks(self._synced, self._not_synced, callbackArgs=(shares,))

    def _synced(self, _: None, shares: Sequence[_Share]) -> None:
        self._is_postponed = False
        self.busy_s += self._clock.seconds() - self._begun_s
        goes_on = bool(self._joined)
        if goes_on:
            self._begin_round()  # the disk works while the responses are sent
        for partition, synced, end in shares:
            # A partition that moved to another directory meanwhile has another log, in which all of this was synced
            # too.
            if partition.log is synced:
                partition.synced(end)
        if not goes_on:
            self._begin_round()

    def _not_synced(self, failure: Failure) -> None:
        problem = failure.value
        assert problem is not None
        if not self._finishing and isinstance(problem.__cause__, OSError) and is_transient(problem.__cause__):
            self._postpone(problem)
            return
        self._joined.clear()
        self._failed(problem)
        self._rest()

    def _postpone(self, problem: BaseException) -> None:
        """Repeat the round later; the partitions that have not left keep waiting."""
        if not self._is_postponed:
            log.warning("appends that wait for a sync keep waiting: %s", problem)
        self._is_postponed = True
        self._joined = {**self._under_way, **self._joined}
        self._again = self._clock.callLater(PATIENCE_S, self._begin_round)

    def _rest(self) -> None:
        self._is_busy = self._is_postponed = False
        finishing, self._finishing = self._finishing, []
        for finished in finishing:
            finished.callback(None)
