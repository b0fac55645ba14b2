"""Finding out which batches of a log are damaged."""

from __future__ import annotations

import logging

from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.segment.corruption import BadBatch, find_bad_batches
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX

log = logging.getLogger(__name__)


class LogExaminer:
    """Reads whole segments and records their damaged batches; changes nothing else of the log."""

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def examine_and_reindex(self, segment: Segment) -> None:
        """Find the damaged batches of a segment, and rebuild its indexes, after a search led to no batch. [disk]

        The fault may lie in the indexes: a rotten entry leads into the middle of a batch.
        """
        damaged = self.examine(segment)
        if segment in self._state.segments:
            if not damaged:
                log.warning(
                    "%s: its indexes do not lead to its batches and are rebuilt", segment.files.path(LOG_SUFFIX)
                )
            with self._state.disk_operation(repeatable=True):
                segment.rebuild_indexes()

    def examine(self, segment: Segment) -> bool:
        """Read a whole segment and record its damaged batches; return whether there are any. [disk]"""
        if segment not in self._state.segments:
            return False  # retention or compaction has removed it meanwhile
        size_bytes, last_offset = segment.size_bytes, self.last_offset_of(segment)
        with self._state.disk_operation(repeatable=True):
            file = segment.pin()
            try:
                bad_batches = find_bad_batches(file.file, segment.base_offset, size_bytes, last_offset)
            finally:
                file.release()
        segment.remember_corrupt(bad_batches)
        return bool(bad_batches)

    def last_offset_of(self, segment: Segment) -> int:
        """Return the largest offset that a segment may hold. [loop]"""
        following = self._state.segments.after(segment)
        return (following.base_offset if following is not None else self._state.log_end_offset) - 1

    @property
    def corrupt(self) -> dict[int, tuple[BadBatch, ...]]:
        """The known damaged batches, by the base offset of their segment. [loop]"""
        return {segment.base_offset: segment.corrupt for segment in self._state.segments if segment.corrupt}
