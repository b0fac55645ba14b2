"""The messages between the broker and a worker process that compacts a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kafkacompat.storage.log_config import LogConfig


class CleaningSource(NamedTuple):
    """A segment to compact; `modified_ms` is the time of its last write."""

    base_offset: int
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """A log to compact.

    `sources` are its segments before `end_offset`, and `bases` are the base offsets of the later ones. The last compaction
    stopped at `first_dirty_offset`. `producers` holds the log's producers as joined snapshot entries: there may be a
    million. `map_bytes` is the memory for the keys; the share `load_factor` of it is used.
    """

    directory: str
    sources: tuple[CleaningSource, ...]
    bases: tuple[int, ...]
    first_dirty_offset: int
    end_offset: int
    now_ms: int
    producers: bytes
    config: LogConfig
    map_bytes: int
    load_factor: float


class CleaningProgress(NamedTuple):
    """Bytes that were read and written since the last step."""

    io_bytes: int


class CleanedSegment(NamedTuple):
    """A synced `.cleaned` segment at `base_offset`, which replaces segments with the base offsets `replaced`."""

    base_offset: int
    replaced: tuple[int, ...]


class CleaningResult(NamedTuple):
    """The log is compacted up to `end_offset`. Records without a key are dropped and counted as `keyless`."""

    end_offset: int
    records_read: int
    records_kept: int
    bytes_read: int
    bytes_written: int
    keyless: int
    keys: int
