"""Reading the batches of a segment file, each checked against its checksum."""

from __future__ import annotations

from collections.abc import Iterator

from kafkacompat.storage.files.filesystem import File
from kafkacompat.storage.segment.window import CHUNK_BYTES, Window
from kafkacompat.wire.record_batch import CRC_END, HEADER_SIZE, MAGIC_V2, BatchHeader, read_header


class CorruptBatchError(Exception):
    """A log has a damaged batch, so compaction cannot know which records to keep.

    `base_offset` is that of the damaged segment; -1 if the error belongs to no single segment.
    """

    def __init__(self, detail: str, base_offset: int = -1) -> None:
        super().__init__(detail, base_offset)
        self.base_offset = base_offset

    def __str__(self) -> str:
        return str(self.args[0])


def read_checked_batches(
    file: File, name: str, size_bytes: int, offsets: range
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the header and the bytes of each batch of a segment, all within `offsets`.

    Raises CorruptBatchError at the first damaged one.
    """
    window = Window(file)
    position, next_offset = 0, offsets.start
    while position < size_bytes:
        header = _find_header(window, position, size_bytes, range(next_offset, offsets.stop))
        if header is None or window.checksum(position + CRC_END, position + header.size_bytes) != header.crc:
            raise CorruptBatchError(f"byte {position} of {name} begins no sound batch", offsets.start)
        size = header.size_bytes
        whole = window.read(position, size) if size <= CHUNK_BYTES else memoryview(file.pread(size, position))
        yield header, whole
        position, next_offset = position + size, header.last_offset + 1


def _find_header(window: Window, position: int, size_bytes: int, offsets: range) -> BatchHeader | None:
    """Return the header at a position; None if it is impossible."""
    if position + HEADER_SIZE > size_bytes:
        return None
    header = read_header(window.read(position, HEADER_SIZE))
    sized = HEADER_SIZE <= header.size_bytes <= size_bytes - position
    in_order = offsets.start <= header.base_offset <= header.last_offset < offsets.stop
    return header if header.magic == MAGIC_V2 and sized and in_order else None
