"""Conversion of segments of message formats 0 and 1, from before Apache Kafka 0.11, when a log is opened.

Offsets, timestamps, keys, values and codecs stay. The last segment is converted first. Each is written to a file that
replaces the old one only when it is synced, as a compacted segment does (see leftovers.py). If the first segment with
contents is of format 2, the conversion is complete. Everything here is a disk operation.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from kafkacompat.storage.files.filesystem import File, Files
from kafkacompat.storage.log.leftovers import clean_folder
from kafkacompat.storage.segment.segment_files import CLEANED_SUFFIX, SWAP_SUFFIX, list_segment_bases, log_file_path
from kafkacompat.storage.segment.sound_batches import LegacyFormatError
from kafkacompat.storage.segment.walk import Bounds, walk_log_file
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.legacy_log import convert_entries
from kafkacompat.wire.message_set import MAGIC_POSITION, LegacyMessage, read_message_set
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import LENGTH_END, MAGIC_V2

log = logging.getLogger(__name__)

_START_BYTES = MAGIC_POSITION + 1
_PIECE_BYTES = 1 << 20


def convert_legacy(files: Files, folder: str, max_decompressed_bytes: int, *, may_be_torn: bool) -> None:
    """Convert the segments of a partition's folder that are of an old format.

    A torn message at the end of the last segment is left out if it `may_be_torn`. Raises LegacyFormatError for anything
    else that cannot be read; that segment stays unchanged.
    """
    paths = (log_file_path(folder, base) for base in list_segment_bases(files, folder))
    first = next((path for path in paths if files.size(path)), None)
    if first is None or not _is_legacy(files, first):
        return
    bases = clean_folder(files, folder)
    legacy = [base for base in bases if _is_legacy(files, log_file_path(folder, base))]
    if legacy:
        log.warning("%s: converting %d segments of an old message format", folder, len(legacy))
    for base in reversed(legacy):
        _Conversion(files, folder, base, may_be_torn and base == bases[-1], max_decompressed_bytes).run()


def _is_legacy(files: Files, path: str) -> bool:
    file = files.open(path)
    try:
        start = file.pread(2 * MAGIC_POSITION, 0)
    finally:
        file.close()
    # Zeros alone are no message, but the remains of a batch after a power failure.
    return len(start) >= _START_BYTES and start[MAGIC_POSITION] < MAGIC_V2 and any(start[MAGIC_POSITION:])


class _Conversion:
    """Converts one segment."""

    def __init__(self, files: Files, folder: str, base: int, may_be_torn: bool, max_decompressed_bytes: int) -> None:
        self._files = files
        self._folder = folder
        self._path = log_file_path(folder, base)
        self._may_be_torn = may_be_torn
        self._max_decompressed_bytes = max_decompressed_bytes
        self._position = 0

    def run(self) -> None:
        """Write the new file and replace the old one by it."""
        source = self._files.open(self._path)
        try:
            target = self._files.open(self._path + CLEANED_SUFFIX, create=True)
            try:
                self._write(source, target)
                target.sync()
            finally:
                target.close()
        finally:
            source.close()
        # Format 0 has no timestamps: retention uses the file's time.
        self._files.set_modified_ms(self._path + CLEANED_SUFFIX, self._files.modified_ms(self._path))
        self._files.rename(self._path + CLEANED_SUFFIX, self._path + SWAP_SUFFIX)
        self._files.sync_directory(self._folder)
        clean_folder(self._files, self._folder)

    def _write(self, source: File, target: File) -> None:
        target.truncate(0)
        for piece in self._split_into_pieces(source):
            target.append((piece,), len(piece))

    def _split_into_pieces(self, source: File) -> Iterator[bytes]:
        """Yield the batches in pieces of about a megabyte."""
        piece = bytearray()
        for batch in self._convert_batches(source):
            piece += batch
            if len(piece) >= _PIECE_BYTES:
                yield bytes(piece)
                piece.clear()
        yield bytes(piece)

    def _convert_batches(self, source: File) -> Iterator[bytes]:
        """Yield the segment's messages as batches, then the batches that follow them unchanged."""
        try:
            yield from convert_entries(self._read_messages(source), self._max_decompressed_bytes)
        except (KafkaError, MalformedError) as problem:
            raise self._build_damage_error(problem) from problem
        size_bytes = source.size()
        for position in range(self._position, size_bytes, _PIECE_BYTES):
            yield source.pread(min(_PIECE_BYTES, size_bytes - position), position)

    def _read_messages(self, source: File) -> Iterator[LegacyMessage]:
        """Yield the entries before the first record batch, and set `_position` to where that begins, or to the end."""
        size_bytes = source.size()
        while self._position < size_bytes:
            start = source.pread(_START_BYTES, self._position)
            if len(start) == _START_BYTES and start[MAGIC_POSITION] >= MAGIC_V2:
                return
            end = self._position + LENGTH_END + max(0, int.from_bytes(start[8:LENGTH_END], "big", signed=True))
            try:
                # A length beyond the end of the file must not allocate memory.
                entry = source.pread(end - self._position, self._position) if end <= size_bytes else start
                message = next(read_message_set(entry))
            except KafkaError as problem:
                if not self._is_torn(source, size_bytes):
                    raise self._build_damage_error(problem) from problem
                self._position = size_bytes
                return
            yield message
            self._position = end

    def _is_torn(self, source: File, size_bytes: int) -> bool:
        """Return whether a crash may have torn the rest: nothing sound follows."""
        return (
            self._may_be_torn and next(walk_log_file(source, Bounds(size_bytes), 0, self._position)).end == size_bytes
        )

    def _build_damage_error(self, problem: Exception) -> LegacyFormatError:
        words = f"the message of an old format at byte {self._position} is damaged ({problem})"
        return LegacyFormatError(f"{self._path} cannot be converted: {words}; the file stays unchanged")
