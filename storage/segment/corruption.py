"""Damaged batches of a log: how they are found, and how a reader passes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import File
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET
from kafkacompat.storage.segment.sound_batches import scan_sound_batches
from kafkacompat.storage.segment.walk import Bounds, Stretch, walk_log_file
from kafkacompat.storage.segment.window import Window
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import CRC_END, MAGIC_V2, BatchHeader


class BadBatch(NamedTuple):
    """Bytes of a segment's file that are no sound batch, and the offsets that are lost with them, both ends included."""

    position: int
    size_bytes: int
    first_offset: int
    last_offset: int

    @property
    def end(self) -> int:
        """The position after it."""
        return self.position + self.size_bytes


class CorruptDataError(KafkaError):
    """CORRUPT_MESSAGE, with the damaged batch; None while the extent of the damage is unknown."""

    def __init__(self, detail: str, bad: BadBatch | None) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, detail)
        self.bad = bad

    @property
    def next_offset(self) -> int | None:
        """The offset after the damage."""
        return None if self.bad is None else self.bad.last_offset + 1


class SegmentExtent(NamedTuple):
    """A segment's length and the offsets that it may hold; `last_offset` is None for the last segment of a log."""

    size_bytes: int
    base_offset: int
    last_offset: int | None

    @property
    def bounds(self) -> Bounds:
        """The limits that its batches are checked against."""
        return Bounds(
            self.size_bytes, self.base_offset + MAX_RELATIVE_OFFSET if self.last_offset is None else self.last_offset
        )


class SoundSpan(NamedTuple):
    """Positions between which batches can be read, and the bad batch at the end, if any."""

    start: int
    end: int
    bad: BadBatch | None


def split_at_damage(known: Sequence[BadBatch], position: int, end: int) -> Iterator[SoundSpan]:
    """Split the bytes from `position` to `end` at the known bad batches."""
    for bad in known:
        if bad.end > position:
            yield SoundSpan(position, max(position, bad.position), bad)
            position = bad.end
    yield SoundSpan(position, max(position, end), None)


def find_bad_batches(file: File, base_offset: int, size_bytes: int, last_offset: int) -> list[BadBatch]:
    """Read a whole segment, whose offsets go up to `last_offset`, and return its bad batches."""
    return [
        as_bad_batch(stretch, last_offset)
        for stretch in walk_log_file(file, Bounds(size_bytes, last_offset), base_offset)
        if stretch.problem
    ]


def scan_sound_headers(file: File, size_bytes: int, base_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of every sound batch of a segment, also after damage."""
    for stretch in walk_log_file(file, SegmentExtent(size_bytes, base_offset, None).bounds, base_offset):
        if stretch.header is not None and not stretch.problem:
            yield stretch.position, stretch.header


def scan_trusted_batches(
    file: File, extent: SegmentExtent, trusted_below: int, bad: list[BadBatch]
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of a segment's sound batches, up to where the log ends in it.

    Batches of offsets below `trusted_below` were on the disk once. Damage among them is no trace of a crash: it is added to
    `bad`, and the log continues after it if a sound batch or another segment follows. Raises LegacyFormatError.
    """
    position, next_offset = 0, extent.base_offset
    for stretch in walk_log_file(file, extent.bounds, next_offset) if next_offset < trusted_below else ():
        last_offset = extent.last_offset if stretch.last_offset < 0 else stretch.last_offset
        if stretch.problem and (stretch.base_offset >= trusted_below or last_offset is None):
            return
        if stretch.problem:
            bad.append(as_bad_batch(stretch, last_offset or 0))
        elif stretch.header is not None:
            yield stretch.position, stretch.header
        else:
            break  # an old format, which sound_batches rejects
        position, next_offset = stretch.end, bad[-1].last_offset + 1 if stretch.problem else stretch.last_offset + 1
        if next_offset >= trusted_below:
            break
    for header in scan_sound_batches(file, extent.size_bytes, extent.base_offset, position, next_offset):
        yield position, header
        position += header.size_bytes


def as_bad_batch(stretch: Stretch, last_offset: int) -> BadBatch:
    """Return the bad batch of a damaged stretch; `last_offset` ends one that no sound batch follows."""
    last = stretch.last_offset if stretch.last_offset >= 0 else last_offset
    return BadBatch(stretch.position, stretch.size_bytes, stretch.base_offset, last)


def is_sound_batch(file: File, position: int, header: BatchHeader) -> bool:
    """Return whether a batch matches its checksum, reading it in pieces; its length has to lie in the file."""
    end = position + header.size_bytes
    return header.magic == MAGIC_V2 and Window(file).checksum(position + CRC_END, end) == header.crc
