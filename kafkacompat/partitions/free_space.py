"""How much clients may still write to a log directory, so that the broker itself never runs out of space.

The directory's thread measures the free space of the file system now and then. Between two measurements the appends of
clients are subtracted from the space beyond the reserve (kafkacompat.disk.reserve.bytes). When none is left, appends of
clients fail with KAFKA_STORAGE_ERROR, and clients try again. Offset commits, group metadata, checkpoints, deletion and
retention may use the reserve.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.log_config import LONG_MAX
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.storage.files.filesystem import DiskUsage

log = logging.getLogger(__name__)

NO_SPACE_ERRORS = (errno.ENOSPC, errno.EDQUOT)

STEP_BYTES = 1 << 20
"""A directory with less than this beyond its reserve is full, until it has twice as much."""


class FreeSpace:
    """The free space of one log directory.

    ``measure_usage`` measures the file system. With ``reserve_bytes`` 0 nothing is measured until a write fails for
    lack of space.
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
        """Subtract from other directories of the same file system what is written here."""
        self._others = others

    def reserve(self, size_bytes: int) -> None:
        """Subtract what a client is about to write. Raises KafkaError KAFKA_STORAGE_ERROR when too little is left."""
        self._left_bytes -= size_bytes
        for other in self._others:
            other._left_bytes -= size_bytes
        if self._left_bytes < self._low_bytes:
            self._run_low(size_bytes)

    def _run_low(self, size_bytes: int) -> None:
        is_refused = self._left_bytes < 0
        if is_refused:
            for space in (self, *self._others):
                space._left_bytes += size_bytes
            self._wanted_bytes = max(self._wanted_bytes, size_bytes)
        if not self.is_full:
            self.measure()
        if is_refused:
            raise self.build_full_error()

    def build_full_error(self) -> KafkaError:
        """Return the error for a client that cannot write."""
        reason = f"{self._path} is full: kafkacompat.disk.reserve.bytes={self._reserve_bytes} have to stay free"
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)

    def check_reserve(self, usage: DiskUsage) -> None:
        """Raise OSError ENOSPC when half of the reserve is used: compaction frees space but needs some first."""
        if usage.free_bytes < self._reserve_bytes // 2:
            raise OSError(
                errno.ENOSPC, f"{usage.free_bytes} bytes are free, half of kafkacompat.disk.reserve.bytes is not"
            )

    def note_failed_write(self, problem: BaseException | None) -> None:
        """Note a failed write: after one for lack of space, clients cannot write until a measurement finds space."""
        cause = problem.__cause__ if isinstance(problem, KafkaError) else problem
        if isinstance(cause, OSError) and cause.errno in NO_SPACE_ERRORS and not self.is_full:
            self._fill(f"a write failed: {describe_error(cause)}")

    def measure_if_needed(self) -> None:
        """Measure again, unless no decision depends on it; called at intervals."""
        if self._reserve_bytes or self.is_full:
            self.measure()

    def measure(self) -> None:
        """Measure the file system, unless that is under way."""
        if self._left_before_bytes is None:
            self._left_before_bytes = self._left_bytes
            self._measure_usage().addCallbacks(self._measured, self._not_measured)

    def _measured(self, usage: DiskUsage) -> None:
        assert self._left_before_bytes is not None
        # Part of what was taken meanwhile may be written already and counts twice then: a little too little is left.
        taken_bytes = self._left_before_bytes - self._left_bytes
        self._left_before_bytes = None
        room_bytes = usage.free_bytes - self._reserve_bytes - taken_bytes
        if not self.is_full and room_bytes < self._wanted_bytes:
            self._fill(f"{usage.free_bytes} bytes are free")
        elif not self.is_full or room_bytes >= 2 * self._wanted_bytes:
            self._grant(room_bytes)

    def _not_measured(self, failure: Failure) -> None:
        self._left_before_bytes = None
        log.error("the free space of %s cannot be measured: %s", self._path, failure.value)

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
