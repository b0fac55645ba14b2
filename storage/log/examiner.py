"""Finding out which batches of a log are damaged."""

from __future__ import annotations

import logging

from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.segment.corruption import BadBatch, find_bad_batches
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX

log = logging.getLogger(__name__)


class LogExaminer:
    """Reads segments through and notes their damaged batches in them; changes nothing else of the log."""

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def examine_and_reindex(self, segment: Segment) -> None:
        """After headers led nowhere: find out which batches are damaged, and build the indexes again. [disk]

        It may have been the indexes as well: an entry that has rotted leads into the middle of a batch.
        """
        damaged = self.examine(segment)
        if segment in self._state.segments:
            if not damaged:
                log.warning(
                    "%s: its indexes do not lead to its batches and are built again", segment.files.path(LOG_SUFFIX)
                )
            with self._state.disk_operation(repeatable=True):
                segment.index_again()

    def examine(self, segment: Segment) -> bool:
        """Read a segment through and remember what is damaged; whether anything is. [disk]"""
        if segment not in self._state.segments:
            return False  # retention or compaction took it away meanwhile
        size_bytes, last_offset = segment.size_bytes, self.last_offset_of(segment)
        with self._state.disk_operation(repeatable=True):
            file = segment.pin()
            try:
                found = find_bad_batches(file.file, segment.base_offset, size_bytes, last_offset)
            finally:
                file.release()
        segment.remember_corrupt(found)
        return bool(found)

    def last_offset_of(self, segment: Segment) -> int:
        """The largest offset that a segment can hold. [loop]"""
        following = self._state.segments.behind(segment)
        return (following.base_offset if following is not None else self._state.log_end_offset) - 1

    @property
    def corrupt(self) -> dict[int, tuple[BadBatch, ...]]:
        """The batches known to be damaged, by the base offset of their segment. [loop]"""
        return {each.base_offset: each.corrupt for each in self._state.segments if each.corrupt}
