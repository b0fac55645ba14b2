"""How much clients may still write to a log directory, so that what keeps a broker alive always has room.

The file system is asked now and then, in the thread of the directory; in between, appends of clients take what they write
from what there was beyond the reserve (kafkacompat.disk.reserve.bytes). When it is used up they are refused with
KAFKA_STORAGE_ERROR, upon which clients try again. Offset commits, group metadata, checkpoints, deletion and retention do not ask.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.storage.log_config import LONG_MAX
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.storage.files.filesystem import DiskUsage

log = logging.getLogger(__name__)

WANT_OF_ROOM = (errno.ENOSPC, errno.EDQUOT)

STEP_BYTES = 1 << 20
"""A directory with less than this beyond its reserve is full, and it is no longer with twice as much."""


class FreeSpace:
    """What is left of one log directory.

    ``measure_usage`` asks the file system; ``reserve_bytes`` 0 asks nothing until a write fails for want of room.
    """

    def __init__(self, path: str, measure_usage: Callable[[], Deferred[DiskUsage]], reserve_bytes: int = 0) -> None:
        self.is_full = False
        self._path = path
        self._measure_usage = measure_usage
        self._reserve_bytes = reserve_bytes
        self._left_bytes = LONG_MAX
        self._low_bytes = 0
        self._wanted_bytes = STEP_BYTES
        self._left_before_bytes: int | None = None
        self._others: Sequence[FreeSpace] = ()

    def share_with(self, others: Sequence[FreeSpace]) -> None:
        """Let what is taken here count for other directories of the same file system too."""
        self._others = others

    def take(self, size_bytes: int) -> None:
        """Count what a client is about to write; raises KafkaError KAFKA_STORAGE_ERROR when there is no room for it."""
        self._left_bytes -= size_bytes
        for other in self._others:
            other._left_bytes -= size_bytes
        if self._left_bytes < self._low_bytes:
            self._run_low(size_bytes)

    def _run_low(self, size_bytes: int) -> None:
        is_refused = self._left_bytes < 0
        if is_refused:
            for each in (self, *self._others):
                each._left_bytes += size_bytes
            self._wanted_bytes = max(self._wanted_bytes, size_bytes)
        if not self.is_full:
            self.measure()
        if is_refused:
            raise self.refusal()

    def refusal(self) -> KafkaError:
        """What is said to who gets no room."""
        reason = f"{self._path} is full: kafkacompat.disk.reserve.bytes={self._reserve_bytes} have to stay free"
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)

    def check_reserve(self, usage: DiskUsage) -> None:
        """Raise OSError ENOSPC when half of the reserve is gone: what makes room needs some itself, and leaves others the rest."""
        if usage.free_bytes < self._reserve_bytes // 2:
            raise OSError(
                errno.ENOSPC, f"{usage.free_bytes} bytes are free, half of kafkacompat.disk.reserve.bytes is not"
            )

    def failed(self, problem: BaseException | None) -> None:
        """A write failed; for want of room, clients are refused from now on until some is found."""
        cause = problem.__cause__ if isinstance(problem, KafkaError) else problem
        if isinstance(cause, OSError) and cause.errno in WANT_OF_ROOM and not self.is_full:
            self._fill(f"a write failed: {cause}")

    def watch(self) -> None:
        """Look again, unless nothing depends on it; to be called by the clock."""
        if self._reserve_bytes or self.is_full:
            self.measure()

    def measure(self) -> None:
        """Ask the file system, unless it is being asked."""
        if self._left_before_bytes is None:
            self._left_before_bytes = self._left_bytes
            self._measure_usage().addCallbacks(self._measured, self._not_measured)

    def _measured(self, usage: DiskUsage) -> None:
        assert self._left_before_bytes is not None
        # Some of what was taken meanwhile may be written already: then a little less is left than there is.
        taken_bytes = self._left_before_bytes - self._left_bytes
        self._left_before_bytes = None
        room_bytes = usage.free_bytes - self._reserve_bytes - taken_bytes
        if not self.is_full and room_bytes < self._wanted_bytes:
            self._fill(f"{usage.free_bytes} bytes are free")
        elif not self.is_full or room_bytes >= 2 * self._wanted_bytes:
            self._grant(room_bytes)

    def _not_measured(self, failure: Failure) -> None:
        self._left_before_bytes = None
        log.error("the free space of %s cannot be found out: %s", self._path, failure.getErrorMessage())

    def _fill(self, reason: str) -> None:
        self.is_full = True
        self._left_bytes = self._low_bytes = 0
        text = "log directory %s is full (%s, kafkacompat.disk.reserve.bytes=%d): clients cannot produce to it for now"
        log.error(text, self._path, reason, self._reserve_bytes)

    def _grant(self, room_bytes: int) -> None:
        if self.is_full:
            self.is_full = False
            log.warning("log directory %s has room again: clients can produce to it", self._path)
        self._wanted_bytes = STEP_BYTES
        self._left_bytes = room_bytes if self._reserve_bytes else LONG_MAX
        self._low_bytes = room_bytes // 2 if self._reserve_bytes else 0
