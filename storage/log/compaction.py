"""Compaction of a log: which segments it may compact, and swapping the compacted segments in.

The swap follows Kafka's protocol, so that a crash can interrupt it anywhere. A start removes `.cleaned` files. Once all
files of a compacted segment end in `.swap`, it replaces the old segments, and a start completes that (leftovers.py).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafkacompat.storage.compaction import CleanableRange, CleanedSegment, CleaningJob, find_cleanable
from kafkacompat.storage.compaction.job import CleaningSource
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.log_config import LONG_MAX
from kafkacompat.storage.producers.producer import PRODUCER_ENTRY
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import CLEANED_SUFFIX, DELETED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX


class LogCompaction:
    """Chooses the segments to compact, and swaps the compacted segments in."""

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def find_cleanable(self, *, stable_offset: int, now_ms: int) -> CleanableRange | None:
        """Return what a compaction would read, up to the last stable offset; None for nothing. [loop]"""
        return find_cleanable(
            self._state.segments,
            self._state.config,
            checkpoint=self._state.cleaner_offset,
            log_start_offset=self._state.log_start_offset,
            log_end_offset=self._state.log_end_offset,
            stable_offset=stable_offset,
            now_ms=now_ms,
        )

    def find_unknown_first_timestamps(self) -> list[Segment]:
        """Return the segments whose first timestamp `find_cleanable` lacks to decide whether they are overdue. [loop]"""
        if self._state.config.max_compaction_lag_ms == LONG_MAX:
            return []
        return [
            segment
            for segment in self._state.segments
            if segment.sealed and segment.size_bytes and segment.first_timestamp < 0
        ]

    def learn_first_timestamps(self, segments: Sequence[Segment]) -> None:
        """Read the first timestamps of segments. [disk]"""
        with self._state.disk_operation(repeatable=True):
            for segment in segments:
                segment.learn_first_timestamp()

    def make_cleaning_job(
        self, cleanable: CleanableRange, *, now_ms: int, map_bytes: int, load_factor: float
    ) -> CleaningJob | None:
        """Return the job for `compact`; None if an open transaction begins before all dirty segments.

        [any thread; the time grows with the number of producers]
        """
        producers, undecided_offset = bytearray(), cleanable.end_offset
        for entry in self._state.producer_state.producers.entries():
            _, _, _, last_offset, _, _, _, first_offset = PRODUCER_ENTRY.unpack(entry)
            if first_offset >= 0:
                undecided_offset = min(undecided_offset, first_offset)
            if last_offset < cleanable.end_offset:
                producers += entry
        end_offset = min(cleanable.end_offset, self._segment_base(undecided_offset))
        if end_offset <= cleanable.first_dirty_offset:
            return None
        segments = list(self._state.segments)
        sources = [segment for segment in segments if segment.base_offset < end_offset]
        return CleaningJob(
            self._state.directory,
            tuple(CleaningSource(segment.base_offset, segment.size_bytes, segment.modified_ms) for segment in sources),
            tuple(segment.base_offset for segment in segments[len(sources) :]),
            cleanable.first_dirty_offset,
            end_offset,
            now_ms,
            bytes(producers),
            self._state.config,
            map_bytes,
            load_factor,
        )

    def _segment_base(self, offset: int) -> int:
        return self._state.segments[max(0, self._state.segments.find_slot(offset))].base_offset

    def prepare_swap(self, cleaned: CleanedSegment) -> Segment:
        """Commit to a compacted segment: from now on a start would complete its swap. [disk]"""
        with self._state.disk_operation():
            written = Segment(
                self._state.files, self._state.directory, cleaned.base_offset, self._state.cache, CLEANED_SUFFIX
            )
            written.files.rename(SWAP_SUFFIX)
            self._state.files.sync_directory(self._state.directory)
            return Segment.load(
                self._state.files, self._state.directory, cleaned.base_offset, self._state.cache, SWAP_SUFFIX
            )

    def swap_segments(self, cleaned: CleanedSegment, segment: Segment) -> list[Segment]:
        """Read `segment` from now on; returns the replaced ones, whose regions may still be sent. [loop]"""
        segments = list(self._state.segments)
        start = self._state.segments.find_slot(cleaned.base_offset)
        replaced = segments[start : start + len(cleaned.replaced)]
        if (
            tuple(segment.base_offset for segment in replaced) != cleaned.replaced
            or self._state.segments.active in replaced
        ):
            problem = f"{self._state!r} lacks the segments that {cleaned} replaces"
            self._state.take_offline(problem)
            raise ValueError(problem)
        self._state.segments.replace([*segments[:start], segment, *segments[start + len(replaced) :]])
        return replaced

    def complete_swap(self, segment: Segment, replaced: Sequence[Segment]) -> None:
        """Rename the segment to its final name, and the replaced ones so that a start ignores them. [disk]

        Each step is synced before the next, as in leftovers.py.
        """
        with self._state.disk_operation():
            for old in replaced:
                self._state.cache.forget(old)
                old.unload()
                old.files.rename(DELETED_SUFFIX)
            # A replaced segment beside the new one would hide the records that this has of later ones.
            self._state.files.sync_directory(self._state.directory)
            segment.files.rename_one(LOG_SUFFIX, "")
            # If that rename were lost, a start would remove the segment's other files as those of a replaced segment.
            self._state.files.sync_directory(self._state.directory)
            segment.files.rename("")
            self._state.snapshots.remove(
                *(old.base_offset for old in replaced if old.base_offset != segment.base_offset)
            )
            # A remaining `.swap` file would seem incomplete beside the first `.cleaned` file of the next compaction.
            self._state.files.sync_directory(self._state.directory)

    def remove_replaced(self, replaced: Sequence[Segment]) -> None:
        """Remove the files of replaced segments. [disk]"""
        with self._state.disk_operation():
            for segment in replaced:
                segment.files.remove()

    def remove_cleaned(self) -> None:
        """Remove the files of a compaction that failed. [disk]"""
        with self._state.disk_operation():
            for name in self._state.files.list(self._state.directory):
                if name.endswith(CLEANED_SUFFIX):
                    self._state.files.remove(os.path.join(self._state.directory, name))
