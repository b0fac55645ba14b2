"""Batches of a log that are known to be damaged: what a reader may not believe, and where it goes on behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import File
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET
from kafkacompat.storage.segment.sound_batches import sound_batches
from kafkacompat.storage.segment.walk import Bounds, Stretch, walk
from kafkacompat.storage.segment.window import Window
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import CRC_END, MAGIC_V2, BatchHeader


class BadBatch(NamedTuple):
    """Bytes of a segment's file that are no sound batch, and the offsets that are missing with them, both ends included."""

    position: int
    size_bytes: int
    first_offset: int
    last_offset: int

    @property
    def end(self) -> int:
        """Position behind it."""
        return self.position + self.size_bytes


class CorruptDataError(KafkaError):
    """CORRUPT_MESSAGE, with what is damaged; that is None where nobody has looked yet how far it goes."""

    def __init__(self, detail: str, bad: BadBatch | None) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, detail)
        self.bad = bad

    @property
    def behind(self) -> int | None:
        """The offset behind the damage."""
        return None if self.bad is None else self.bad.last_offset + 1


class Extent(NamedTuple):
    """A segment's file: how long it is, and which offsets it may hold; the last one is None for the last segment of a log."""

    size_bytes: int
    base_offset: int
    last_offset: int | None

    @property
    def bounds(self) -> Bounds:
        """What to judge its batches by."""
        return Bounds(
            self.size_bytes, self.base_offset + MAX_RELATIVE_OFFSET if self.last_offset is None else self.last_offset
        )


class Spans(NamedTuple):
    """From where to where batches can be read, and then, if that ends at one, the bad batch."""

    start: int
    end: int
    bad: BadBatch | None


def spans(known: Sequence[BadBatch], position: int, end: int) -> Iterator[Spans]:
    """What lies between a position and an end, cut up by the bad batches that are known there."""
    for bad in known:
        if bad.end > position:
            yield Spans(position, max(position, bad.position), bad)
            position = bad.end
    yield Spans(position, max(position, end), None)


def find_bad_batches(file: File, base_offset: int, size_bytes: int, last_offset: int) -> list[BadBatch]:
    """Read a segment of offsets up to *last_offset* through."""
    return [
        bad_batch(each, last_offset)
        for each in walk(file, Bounds(size_bytes, last_offset), base_offset)
        if each.problem
    ]


def sound_headers(file: File, size_bytes: int, base_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """The positions and headers of the sound batches of a segment, also behind damage."""
    for each in walk(file, Extent(size_bytes, base_offset, None).bounds, base_offset):
        if each.header is not None and not each.problem:
            yield each.position, each.header


def believed_batches(
    file: File, extent: Extent, trusted_below: int, bad: list[BadBatch]
) -> Iterator[tuple[int, BatchHeader]]:
    """The positions and headers of a segment's sound batches, as far as the log goes on in it.

    A batch of offsets below *trusted_below* was on the disk once: what is wrong with it is no trace of a crash, so it is added to
    *bad*, and the log goes on behind it, if anything sound or another segment follows. Raises LegacyFormatError.
    """
    position, next_offset = 0, extent.base_offset
    for stretch in walk(file, extent.bounds, next_offset) if next_offset < trusted_below else ():
        last_offset = extent.last_offset if stretch.last_offset < 0 else stretch.last_offset
        if stretch.problem and (stretch.base_offset >= trusted_below or last_offset is None):
            return
        if stretch.problem:
            bad.append(bad_batch(stretch, last_offset or 0))
        elif stretch.header is not None:
            yield stretch.position, stretch.header
        else:
            break  # of an old format: what follows refuses it
        position, next_offset = stretch.end, bad[-1].last_offset + 1 if stretch.problem else stretch.last_offset + 1
        if next_offset >= trusted_below:
            break
    for header in sound_batches(file, extent.size_bytes, extent.base_offset, position, next_offset):
        yield position, header
        position += header.size_bytes


def bad_batch(stretch: Stretch, last_offset: int) -> BadBatch:
    """What there is to remember of a stretch that is damaged; *last_offset* ends one that nothing sound follows."""
    last = stretch.last_offset if stretch.last_offset >= 0 else last_offset
    return BadBatch(stretch.position, stretch.size_bytes, stretch.base_offset, last)


def is_sound(file: File, position: int, header: BatchHeader) -> bool:
    """Whether a batch matches its checksum; its length must lie in the file. Takes little memory whatever it claims."""
    end = position + header.size_bytes
    return header.magic == MAGIC_V2 and Window(file).checksum(position + CRC_END, end) == header.crc
