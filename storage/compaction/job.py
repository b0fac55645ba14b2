"""What a compaction is told, and what it tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kafkacompat.storage.log_config import LogConfig


class Source(NamedTuple):
    """A segment that is to be compacted."""

    base_offset: int
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """A log that is to be compacted.

    ``sources`` are all its segments below ``end_offset``, ``bases`` those of the segments behind them, ``first_dirty_offset`` is where
    the last compaction stopped. ``producers`` are those whose sequence numbers the log remembers, as entries of a snapshot one behind
    the other: there may be a million. ``map_bytes`` is the memory for keys, of which the share
    ``load_factor`` is used.
    """

    directory: str
    sources: tuple[Source, ...]
    bases: tuple[int, ...]
    first_dirty_offset: int
    end_offset: int
    now_ms: int
    producers: bytes
    config: LogConfig
    map_bytes: int
    load_factor: float


class Progress(NamedTuple):
    """So many bytes were read and written since the last time."""

    io_bytes: int


class CleanedSegment(NamedTuple):
    """The segments ``replaced``, by their base offsets, may give way to the `.cleaned` one at ``base_offset``, which is on the disk."""

    base_offset: int
    replaced: tuple[int, ...]


class CleaningResult(NamedTuple):
    """All is done up to ``end_offset``. Records without a key are dropped and counted as ``keyless``."""

    end_offset: int
    records_read: int
    records_kept: int
    bytes_read: int
    bytes_written: int
    keyless: int
    keys: int
