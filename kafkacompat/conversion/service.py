"""What is converted where: a little at once, much in worker processes, and what was asked for lately not again.

Converted records that come from a worker process lie in a nameless file, and are sent from there like any others: how
slowly a client reads them makes no difference to the broker's memory.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import NamedTuple, TypeAlias

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.conversion.processes import Call, Workers
from kafkacompat.storage.filesystem import Files
from kafkacompat.storage.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment_file import FileRegion, SegmentFile
from kafkacompat.storage.validation import codec_levels, stored_codec
from kafkacompat.wire.conversion import Converted, Limits, Target, down_convert, is_compressed, up_convert
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.record_batch import batches, read_header

# So much takes a few milliseconds at most, as long as nothing has to be unpacked.
IN_PLACE_BYTES = 32 * 1024
KEPT_BYTES = 32 * 1024 * 1024

_Key: TypeAlias = "tuple[bytes, int, int, int, int, int]"
"""Topic id, partition, first offset, bytes of batches, format, most bytes of messages."""


class ConvertedRecords(NamedTuple):
    """A message set (None: an empty one), and the offset behind the last batch that was looked at for it."""

    records: bytes | FileRegion | None
    next_offset: int


class _Kept(NamedTuple):
    file: SegmentFile
    size_bytes: int
    next_offset: int


class Conversions:
    """Converts for handlers; ``files`` makes the nameless files."""

    def __init__(self, workers: Workers, files: Files) -> None:
        self._workers = workers
        self._files = files
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._kept_bytes = 0

    def close(self) -> None:
        """Stop converting and let go of what is kept."""
        self._workers.close()
        while self._kept:
            self._drop_oldest()

    # Up

    def up(self, records: Buffer, config: LogConfig) -> bytes | Deferred[bytes]:
        """Make one record batch of a message set, as a topic of that configuration stores it.

        Raises KafkaError, or fails with it, as `up_convert` does.
        """
        target = Target(stored_codec(config), codec_levels(config))
        limits = Limits(config.max_message_bytes, config.max_decompressed_bytes)
        if len(records) <= IN_PLACE_BYTES and not is_compressed(records):
            return up_convert(records, target, limits)
        data = bytes(records)
        return self._workers.run(lambda call: call("up_convert", data, target, limits))

    # Down

    def down(
        self, log: Log, region: FileRegion, magic: int, first_offset: int, max_bytes: int
    ) -> ConvertedRecords | Deferred[ConvertedRecords]:
        """Make a message set of format *magic* of the batches in a region of *log*; the region is released.

        See `down_convert` for the rest. What it gives may be cancelled.
        """
        key = (log.topic_id, log.partition, first_offset, region.size_bytes, magic, max_bytes)
        if key in self._kept:
            region.release()
            return self._again(key)
        arguments = magic, first_offset, max_bytes, log.config.max_decompressed_bytes
        try:
            data = _little(region)
        except BaseException:
            region.release()
            raise
        if data is not None:
            region.release()
            converted = down_convert(data, *arguments)
            return ConvertedRecords(converted.data or None, converted.next_offset)
        return self._down_elsewhere(log, region, arguments, key)

    def _down_elsewhere(
        self, log: Log, region: FileRegion, arguments: tuple[int, ...], key: _Key
    ) -> Deferred[ConvertedRecords]:
        wanted: Deferred[ConvertedRecords] = Deferred()
        directory = os.path.dirname(log.directory)

        def work(call: Call) -> _Kept | None:
            """In a worker's thread; nothing if the client has gone before its turn came."""
            try:
                data = None if wanted.called else region.pread(0, region.size_bytes)
            finally:
                region.release()
            return None if data is None else self._stored(call("down_convert", data, *arguments), directory)

        def done(kept: _Kept | None) -> None:
            if kept is not None:
                result = self._keep(kept, key)
                if not wanted.called:
                    wanted.callback(result)
                elif isinstance(result.records, FileRegion):
                    result.records.release()

        def failed(failure: Failure) -> None:
            if not wanted.called:
                wanted.errback(failure)

        self._workers.run(work).addCallbacks(done, failed)
        return wanted

    def _stored(self, converted: Converted, directory: str) -> _Kept:
        """Put a message set into a nameless file on the disk of a log."""
        try:
            file = self._files.temporary(directory)
            try:
                file.append((converted.data,), len(converted.data))
            except BaseException:
                file.close()
                raise
        except OSError as problem:
            detail = f"converted records cannot be kept in {directory}: {problem}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, detail) from problem
        return _Kept(SegmentFile(file), len(converted.data), converted.next_offset)

    # What is kept

    def _keep(self, converted: _Kept, key: _Key) -> ConvertedRecords:
        if key in self._kept:
            converted.file.release()
        else:
            self._kept[key] = converted
            self._kept_bytes += converted.size_bytes
        result = self._again(key)
        while self._kept_bytes > KEPT_BYTES:
            self._drop_oldest()
        return result

    def _again(self, key: _Key) -> ConvertedRecords:
        self._kept.move_to_end(key)
        kept = self._kept[key]
        if not kept.size_bytes:
            return ConvertedRecords(None, kept.next_offset)
        kept.file.acquire()
        return ConvertedRecords(FileRegion(kept.file, 0, kept.size_bytes), kept.next_offset)

    def _drop_oldest(self) -> None:
        _, kept = self._kept.popitem(last=False)
        self._kept_bytes -= kept.size_bytes
        kept.file.release()


def _little(region: FileRegion) -> bytes | None:
    """The bytes of a region that takes no time to convert: it is in memory, short, and nothing in it is compressed."""
    size_bytes = region.size_bytes
    if size_bytes > IN_PLACE_BYTES or not region.is_resident(0, size_bytes):
        return None
    data = region.pread(0, size_bytes)
    try:
        return None if any(read_header(batch).codec for batch in batches(data)) else data
    except MalformedError:
        return None
