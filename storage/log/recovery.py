"""Opening a log: which files of the folder belong to it, and which of their contents are trusted.

After a clean shutdown everything is trusted. After a crash, recovery reads the segments from the recovery point on,
batch by batch, and rebuilds their indexes: the log ends before the first batch that is cut off or does not match its
CRC. Damage before the recovery point is no trace of a crash: recovery records it and keeps the batches after it. A
second recovery has the same result as the first. Everything here is a disk operation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log.epoch_recovery import recover_lost_epochs
from kafkacompat.storage.log.leader_epochs import LeaderEpochs
from kafkacompat.storage.log.leftovers import clean_folder
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.recovery import find_open_transactions, rebuild_producer_state
from kafkacompat.storage.producers.snapshots import Snapshots
from kafkacompat.storage.producers.state import ProducerState
from kafkacompat.storage.producers.transaction_replay import TransactionReplay
from kafkacompat.storage.segment.corruption import BadBatch, SegmentExtent, scan_trusted_batches, split_at_damage
from kafkacompat.storage.segment.header_scan import read_claimed_end_offset, scan_headers
from kafkacompat.storage.segment.index_recovery import has_whole_indexes
from kafkacompat.storage.segment.indexes import CorruptIndexError
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import (
    LOG_SUFFIX,
    REMOVED_SUFFIX,
    SegmentFiles,
    choose_removed_name,
    log_file_path,
)
from kafkacompat.storage.segment.segments import Segments, take_newest_segments
from kafkacompat.storage.segment.shared_files import SegmentCache
from kafkacompat.storage.segment.walk import LARGEST_OFFSET

log = logging.getLogger(__name__)


class LoadedLog(NamedTuple):
    """The parts of a loaded log, ready for use."""

    segments: Segments
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    leader_epochs: LeaderEpochs
    producer_state: ProducerState
    truncated_bytes: int = 0


def create_empty_log(files: Files, directory: str, cache: SegmentCache, base_offset: int = 0) -> LoadedLog:
    """Create a log of one empty segment at `base_offset` in a folder without segments; nothing is synced."""
    snapshots = Snapshots(files, directory)
    snapshots.remove(*snapshots.offsets())
    epochs = LeaderEpochs.load(files, directory)
    epochs.truncate_from_end(0)
    epochs.write()
    active = Segment.create(files, directory, base_offset, cache)
    return LoadedLog(Segments([active]), base_offset, base_offset, base_offset, epochs, ProducerState())


def load_log(
    files: Files,
    directory: str,
    config: LogConfig,
    *,
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
    cleaner_offset: int,
    now_ms: int,
    cache: SegmentCache,
    high_watermark: int | None = None,
) -> LoadedLog:
    """See Log.open. Raises LegacyFormatError for a log with batches older than format version 2."""
    bases = clean_folder(files, directory)
    epochs = LeaderEpochs.load(files, directory)
    loader = _Loader(files, directory, config, epochs, cache)
    trusted_below = recovery_point if not clean_shutdown else None
    if not clean_shutdown:
        bases = loader.delete_before(log_start_offset, bases)
    segments = loader.load(bases, trusted_below, cleaner_offset)
    end_offset = loader.open_active(segments, now_ms)
    if segments and end_offset < log_start_offset:
        loader.set_aside(segments, end_offset, log_start_offset)
        segments = []
    if not segments:
        empty = create_empty_log(files, directory, cache, log_start_offset)
        files.sync_directory(directory)
        return empty
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    if not clean_shutdown:
        epochs = recover_lost_epochs(files, directory, epochs, segments, log_start_offset)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(log_start_offset)
    return LoadedLog(
        Segments(segments),
        log_start_offset,
        end_offset,
        end_offset if clean_shutdown and not loader.truncated_bytes else min(recovery_point, end_offset),
        epochs,
        rebuild_producer_state(
            files, directory, Segments(segments), end_offset, now_ms, config, clean_shutdown, high_watermark
        ),
        loader.truncated_bytes,
    )


class _Loader:
    """Loads segments one after another, counting the bytes that it cuts off."""

    def __init__(
        self, files: Files, directory: str, config: LogConfig, epochs: LeaderEpochs, cache: SegmentCache
    ) -> None:
        self._files = files
        self._directory = directory
        self._config = config
        self._epochs = epochs
        self._cache = cache
        self._trusted_below = LARGEST_OFFSET
        self._bases: list[int] = []
        self.truncated_bytes = 0

    def load(self, bases: list[int], trusted_below: int | None, cleaner_offset: int) -> list[Segment]:
        """Load the segments; read those with offsets from `trusted_below` on (None: no such) batch by batch.

        The log ends in a segment that is cut off, and before a gap that no compaction (before `cleaner_offset`) explains:
        batches were lost there, though later segments were not.
        """
        self._bases = bases
        self._trusted_below = LARGEST_OFFSET if trusted_below is None else trusted_below
        first_suspect = len(bases)
        if trusted_below is not None:
            first_suspect = max([slot for slot, base in enumerate(bases) if base <= trusted_below], default=0)
        segments: list[Segment] = []
        for slot, base_offset in enumerate(bases):
            if slot < first_suspect:
                # A segment that ends at the recovery point may have been synced before the roll, without its indexes.
                is_sealed = trusted_below is None or bases[slot + 1] < trusted_below
                segments.append(self._load_trusted(base_offset, is_sealed, segments))
                continue
            segment, cut_bytes = self._recover(base_offset, segments)
            segments.append(segment)
            following = bases[slot + 1 :]
            if not following:
                break  # it stays open, as the active segment
            is_short = following[0] > max(cleaner_offset, self._measure(segment)[0])
            segment.seal()
            if cut_bytes or is_short:
                log.warning(
                    "%s is not whole: the %d segments after it are removed",
                    segment.files.path(LOG_SUFFIX),
                    len(following),
                )
                self._remove_from(following)
                break
        return segments

    def delete_before(self, log_start_offset: int, bases: list[int]) -> list[int]:
        """Remove the segments before the log start offset: a crash may have interrupted their deletion.

        If the log ends before that offset, all stay.
        """
        first = max([slot for slot, base in enumerate(bases) if base <= log_start_offset], default=0)
        if first and bases[first] == bases[-1]:
            path = log_file_path(self._directory, bases[-1])
            if read_claimed_end_offset(self._files, path, bases[-1]) < log_start_offset:
                return bases
        self._remove_from(bases[:first])
        return bases[first:]

    def set_aside(self, segments: list[Segment], end_offset: int, log_start_offset: int) -> None:
        """Take all segments out of a log that ends before its log start offset.

        Either records were deleted whose last ones never reached the disk, or the checkpoint is another log's. The records
        are not served again, and their files are kept.
        """
        if not any(segment.size_bytes for segment in segments):
            self._take_away(segments, SegmentFiles.remove)
            return
        log.warning(
            "%s ends at offset %d, before %d, its offset in log-start-offset-checkpoint: it begins there, empty, and its "
            "files are kept with names that end in %s",
            self._directory,
            end_offset,
            log_start_offset,
            REMOVED_SUFFIX,
        )
        self._take_away(segments, self._keep_beside)

    def _keep_beside(self, files: SegmentFiles) -> None:
        path = files.path(LOG_SUFFIX)
        files.rename(choose_removed_name(self._files, path).removeprefix(path))

    def _take_away(self, segments: Sequence[Segment], take: Callable[[SegmentFiles], None]) -> None:
        take_newest_segments(self._files, self._directory, segments, self._cache, take)

    def _load_trusted(self, base_offset: int, is_sealed: bool, earlier: list[Segment]) -> Segment:
        try:
            segment = Segment.load(self._files, self._directory, base_offset, self._cache)
            believed = is_sealed or has_whole_indexes(self._files, segment, self._config.index_interval_bytes)
        except (FileNotFoundError, CorruptIndexError):
            believed = False
        if not believed:
            segment = self._recover(base_offset, earlier)[0]
            segment.seal()
        return segment

    def _recover(self, base_offset: int, earlier: list[Segment]) -> tuple[Segment, int]:
        """Read a whole segment; returns it with rebuilt indexes, and the number of bytes that were cut off."""
        segment = Segment(self._files, self._directory, base_offset, self._cache)
        segment.measure()
        claimed_bytes = segment.size_bytes
        segment.start_empty()
        file = segment.pin()
        replay: TransactionReplay | None = None
        bad: list[BadBatch] = []
        extent = SegmentExtent(claimed_bytes, base_offset, self._last_offset(base_offset))
        try:
            for position, header in scan_trusted_batches(file.file, extent, self._trusted_below, bad):
                segment.size_bytes = position
                if header.is_transactional or header.is_control:
                    if replay is None:
                        open_before = find_open_transactions(self._files, self._directory, earlier, base_offset)
                        replay = TransactionReplay(open_before)
                    replay.follow(file.file, position, header)
                segment.index_batch(
                    header.size_bytes, header.last_offset, header.latest_timestamp, self._config.index_interval_bytes
                )
                if header.partition_leader_epoch > self._epochs.latest:
                    self._epochs.assign(header.partition_leader_epoch, header.base_offset)
            if bad and bad[-1].end == claimed_bytes:
                segment.size_bytes = claimed_bytes
            cut_bytes = claimed_bytes - segment.size_bytes
            if cut_bytes:
                path = segment.files.path(LOG_SUFFIX)
                log.warning("cutting %d bytes of an incomplete batch off the end of %s", cut_bytes, path)
                file.file.truncate(segment.size_bytes)
                file.file.sync()
        finally:
            file.release()
        segment.finish_time_index()
        segment.remember_corrupt(bad)
        segment.transactions.replace(replay.aborted if replay else [])
        self.truncated_bytes += cut_bytes
        return segment, cut_bytes

    def _last_offset(self, base_offset: int) -> int | None:
        """Return the largest offset that a segment may hold, None for the last one."""
        return next((base - 1 for base in self._bases if base > base_offset), None)

    def _remove_from(self, bases: Iterable[int]) -> None:
        segments = [Segment(self._files, self._directory, base, self._cache) for base in bases]
        self._take_away(segments, SegmentFiles.remove)

    def open_active(self, segments: list[Segment], now_ms: int) -> int:
        """Activate the last segment; returns the log's end offset, -1 without segments.

        Recover it if it ends in a torn batch in spite of a clean shutdown, or its transaction index cannot be read.
        """
        if not segments:
            return -1
        end_offset, end = self._measure(segments[-1])
        if end != segments[-1].size_bytes or not segments[-1].has_readable_aborted():
            segments[-1].unload()
            segments[-1] = self._recover(segments[-1].base_offset, segments[:-1])[0]
            end_offset, _ = self._measure(segments[-1])
        segments[-1].activate(now_ms)
        return end_offset

    def _measure(self, segment: Segment) -> tuple[int, int]:
        """Return (end offset, position after the last whole batch), starting from the last entry of the index."""
        offset_index, _ = segment.indexes()
        end_offset, end = segment.base_offset, offset_index.positions[-1] if len(offset_index) else 0
        file = segment.pin()
        try:
            for start, stop, bad in split_at_damage(segment.corrupt, end, segment.size_bytes):
                for position, header in scan_headers(file.file, start, stop):
                    end_offset, end = header.last_offset + 1, position + header.size_bytes
                if bad is not None and end == stop:
                    end_offset, end = bad.last_offset + 1, bad.end
        finally:
            file.release()
        return end_offset, end
