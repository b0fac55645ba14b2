"""Compaction's part of a log: which segments it may look at, and putting what it wrote in their place.

The replacing can be interrupted at any time, by Kafka's protocol: `.cleaned` files count for nothing; once all files of a
segment are called `.swap` it takes its place, and a start finishes what is left to do of that (leftovers.py).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafkacompat.storage.compaction import Cleanable, CleanedSegment, CleaningJob, cleanable
from kafkacompat.storage.compaction.job import Source
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.log_config import LONG_MAX
from kafkacompat.storage.producers.producer import ENTRY
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import CLEANED_SUFFIX, DELETED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX


class LogCompaction:
    """Says what of the log is to be compacted, and swaps the compacted segments in."""

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def cleanable(self, *, stable_offset: int, now_ms: int) -> Cleanable | None:
        """What a compaction would look at, None for nothing; `stable_offset` ends what is replicated and decided. [loop]"""
        return cleanable(
            self._state.segments,
            self._state.config,
            checkpoint=self._state.cleaner_offset,
            log_start_offset=self._state.log_start_offset,
            log_end_offset=self._state.log_end_offset,
            stable_offset=stable_offset,
            now_ms=now_ms,
        )

    def unknown_first_timestamps(self) -> list[Segment]:
        """Segments that have to be looked into before it can be told whether their compaction is overdue. [loop]"""
        if self._state.config.max_compaction_lag_ms == LONG_MAX:
            return []
        return [each for each in self._state.segments if each.sealed and each.size_bytes and each.first_timestamp < 0]

    def learn_first_timestamps(self, segments: Sequence[Segment]) -> None:
        """Look into them. [disk]"""
        with self._state.disk_operation(repeatable=True):
            for segment in segments:
                segment.learn_first_timestamp()

    def cleaning_job(self, what: Cleanable, *, now_ms: int, map_bytes: int, load_factor: float) -> CleaningJob | None:
        """What `compact` is told; None when a transaction is undecided from where on all is dirty.

        [any thread; takes as long as there are producers]
        """
        producers, undecided_offset = bytearray(), what.end_offset
        for entry in self._state.producer_state.producers.entries():
            _, _, _, last_offset, _, _, _, first_offset = ENTRY.unpack(entry)
            if first_offset >= 0:
                undecided_offset = min(undecided_offset, first_offset)
            if last_offset < what.end_offset:
                producers += entry
        end_offset = min(what.end_offset, self._segment_base(undecided_offset))
        if end_offset <= what.first_dirty_offset:
            return None
        segments = list(self._state.segments)
        sources = [each for each in segments if each.base_offset < end_offset]
        return CleaningJob(
            self._state.directory,
            tuple(Source(each.base_offset, each.size_bytes, each.modified_ms) for each in sources),
            tuple(each.base_offset for each in segments[len(sources) :]),
            what.first_dirty_offset,
            end_offset,
            now_ms,
            bytes(producers),
            self._state.config,
            map_bytes,
            load_factor,
        )

    def _segment_base(self, offset: int) -> int:
        return self._state.segments[max(0, self._state.segments.floor(offset))].base_offset

    def prepare_swap(self, cleaned: CleanedSegment) -> Segment:
        """Decide for what was written: from now on a start would put it in its place. [disk]"""
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
        """Read `segment` from now on; returns those it replaces, which may still be read by who has begun to. [loop]"""
        segments = list(self._state.segments)
        start = self._state.segments.floor(cleaned.base_offset)
        replaced = segments[start : start + len(cleaned.replaced)]
        if tuple(each.base_offset for each in replaced) != cleaned.replaced or self._state.segments.active in replaced:
            self._state.offline = True
            raise ValueError(f"{self._state!r} has not the segments that {cleaned} should replace")
        self._state.segments.replace([*segments[:start], segment, *segments[start + len(replaced) :]])
        return replaced

    def complete_swap(self, segment: Segment, replaced: Sequence[Segment]) -> None:
        """Give the segment its name, and those it replaces one that counts for nothing. [disk]

        Each step is on the disk before the next, as in leftovers.py.
        """
        with self._state.disk_operation():
            for old in replaced:
                self._state.cache.forget(old)
                old.unload()
                old.files.rename(DELETED_SUFFIX)
            # One of them beside the segment would hide what this has of later ones.
            self._state.files.sync_directory(self._state.directory)
            segment.files.rename_one(LOG_SUFFIX, "")
            # Were that lost, a start would take the segment's other files for those of one that is replaced, and remove them.
            self._state.files.sync_directory(self._state.directory)
            segment.files.rename("")
            self._state.snapshots.remove(
                *(old.base_offset for old in replaced if old.base_offset != segment.base_offset)
            )
            # Those still called `.swap` would seem incomplete beside the first `.cleaned` file of the next pass.
            self._state.files.sync_directory(self._state.directory)

    def remove_replaced(self, replaced: Sequence[Segment]) -> None:
        """Remove the files of segments that were replaced. [disk]"""
        with self._state.disk_operation():
            for segment in replaced:
                segment.files.remove()

    def remove_cleaned(self) -> None:
        """Remove what a compaction wrote that came to nothing. [disk]"""
        with self._state.disk_operation():
            for name in self._state.files.list(self._state.directory):
                if name.endswith(CLEANED_SUFFIX):
                    self._state.files.remove(os.path.join(self._state.directory, name))
