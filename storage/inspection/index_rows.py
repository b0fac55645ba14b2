"""The rows of index files, and their comparison with the log file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import File
from kafkacompat.storage.inspection.rows import DumpOptions, DumpRow, make_problem_row
from kafkacompat.storage.segment import transaction_index
from kafkacompat.storage.segment.walk import Bounds, Stretch, check_batch_at, walk_log_file

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


class IndexedLog(NamedTuple):
    """The log file that an index belongs to."""

    file: File
    size_bytes: int
    base_offset: int

    def check_batch_at(self, position: int) -> Stretch | None:
        """Check the batch at a position; None for a position outside of the file."""
        if not 0 <= position < self.size_bytes:
            return None
        return check_batch_at(self.file, position, Bounds(self.size_bytes), self.base_offset)


def offset_index_rows(data: bytes, base_offset: int, log: IndexedLog | None, options: DumpOptions) -> Iterator[DumpRow]:
    """Yield the entries of an offset index, and a problem for each that the log contradicts."""
    entries = _unpack_entries(data, OFFSET_ENTRY)
    yield from _check_sanity(data, OFFSET_ENTRY, bool(entries) and entries[-1][0] < 0)
    if options.index_sanity_check:
        return
    for offset, position in _drop_unused_entries(entries, 0):
        if not options.verify_index_only:
            yield DumpRow("offset index entry", {"offset": base_offset + offset, "position": position})
        stretch = log.check_batch_at(position) if log is not None else None
        if log is not None and (stretch is None or stretch.problem or stretch.last_offset != base_offset + offset):
            actual = (
                "no sound batch"
                if stretch is None or stretch.problem
                else f"a batch that ends with {stretch.last_offset}"
            )
            yield make_problem_row(
                f"the entry of offset {base_offset + offset} points at position {position}, where {actual} is"
            )


def time_index_rows(data: bytes, base_offset: int, log: IndexedLog | None, options: DumpOptions) -> Iterator[DumpRow]:
    """Yield the entries of a time index, and a problem for each that the log contradicts."""
    entries = _unpack_entries(data, TIME_ENTRY)
    yield from _check_sanity(data, TIME_ENTRY, bool(entries) and (entries[-1][0] < entries[0][0] or entries[-1][1] < 0))
    if options.index_sanity_check:
        return
    wanted = [(timestamp, base_offset + offset) for timestamp, offset in _drop_unused_entries(entries, 1)]
    timestamps = _max_timestamps(log, {offset for _, offset in wanted}) if log is not None else {}
    before = -1
    for timestamp, offset in wanted:
        if not options.verify_index_only:
            yield DumpRow("time index entry", {"timestamp": timestamp, "offset": offset})
        if timestamp <= before:
            yield make_problem_row(f"the entry of timestamp {timestamp} follows that of {before}")
        if log is not None and timestamps.get(offset) != timestamp:
            actual = (
                f"the largest timestamp {timestamps[offset]}"
                if offset in timestamps
                else "no sound batch that ends there"
            )
            yield make_problem_row(
                f"the entry of timestamp {timestamp} names offset {offset}, where the log has {actual}"
            )
        before = timestamp


def transaction_index_rows(data: bytes) -> Iterator[DumpRow]:
    """Yield the entries of a transaction index."""
    yield from _check_sanity(data, transaction_index.ABORTED_ENTRY, False)
    for version, producer_id, first_offset, last_offset, last_stable_offset in _unpack_entries(
        data, transaction_index.ABORTED_ENTRY
    ):
        fields = {
            "version": version,
            "producerId": producer_id,
            "firstOffset": first_offset,
            "lastOffset": last_offset,
            "lastStableOffset": last_stable_offset,
        }
        yield DumpRow("aborted transaction", fields)


def _unpack_entries(data: bytes, entry: struct.Struct) -> list[tuple[int, ...]]:
    whole = len(data) - len(data) % entry.size
    return list(entry.iter_unpack(data[:whole]))


def _drop_unused_entries(entries: list[tuple[int, ...]], offset_field: int) -> Iterator[tuple[int, ...]]:
    """Yield the entries before the zeros that a killed process leaves at the end."""
    for slot, entry in enumerate(entries):
        if slot and entry[offset_field] == 0:
            return
        yield entry


def _check_sanity(data: bytes, entry: struct.Struct, unordered: bool) -> Iterator[DumpRow]:
    if len(data) % entry.size:
        yield make_problem_row(f"its {len(data)} bytes are no whole number of entries of {entry.size} bytes")
    if unordered:
        yield make_problem_row("its last entry cannot follow its first; Kafka would rebuild it")


def _max_timestamps(log: IndexedLog, last_offsets: set[int]) -> dict[int, int]:
    """Return the largest timestamps of the batches with given last offsets."""
    batches = walk_log_file(log.file, Bounds(log.size_bytes), log.base_offset)
    return {
        stretch.last_offset: stretch.max_timestamp
        for stretch in batches
        if stretch.last_offset in last_offsets and not stretch.problem
    }
