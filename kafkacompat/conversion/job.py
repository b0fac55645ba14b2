"""Down-conversion of the regions of one response, each in the broker or in a worker process."""

from __future__ import annotations

import os
from typing import NamedTuple, TypeAlias

from kafkacompat.conversion.spool import Spool
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire.conversion import ConvertedMessages, down_convert
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.workers.processes import Call

ConversionKey: TypeAlias = "tuple[bytes, int, int, int, int, int]"
"""Topic id, partition, first offset, bytes of batches, message format, most bytes of messages."""


class RegionToConvert(NamedTuple):
    """Batches of a log, and the arguments of `down_convert` for them."""

    log: Log
    region: FileRegion
    first_offset: int
    max_bytes: int


class ConvertedRecords(NamedTuple):
    """A message set (None: an empty one), and the offset after the last batch converted for it."""

    records: bytes | FileRegion | None
    next_offset: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the message set if it is in a file, otherwise 0."""
        return self.records.size_bytes if isinstance(self.records, FileRegion) else 0

    def share(self) -> ConvertedRecords:
        """Return the same records for another holder, who releases them separately."""
        return self._replace(records=self.records.share()) if isinstance(self.records, FileRegion) else self

    def release(self) -> None:
        """Release the file."""
        if isinstance(self.records, FileRegion):
            self.records.release()


Outcome: TypeAlias = "ConvertedRecords | KafkaError"


class ConversionJob:
    """The conversion of one region; ``disk`` is the folder of its log directory."""

    def __init__(self, wanted: RegionToConvert, magic: int) -> None:
        log, self.region, first_offset, max_bytes = wanted
        self.key: ConversionKey = (log.topic_id, log.partition, first_offset, self.region.size_bytes, magic, max_bytes)
        self.disk = os.path.dirname(log.directory)
        self.outcome: Outcome | None = None
        self._first_offset = first_offset
        self._arguments = magic, first_offset, max_bytes, log.config.max_decompressed_bytes

    def set_outcome(self, outcome: Outcome) -> None:
        """Set the outcome and release the region."""
        self.region.release()
        self.outcome = outcome

    def convert_in_place(self, data: bytes) -> None:
        """Convert the region's bytes at once."""
        try:
            converted = down_convert(data, *self._arguments, len(data))
        except KafkaError as problem:
            self.set_outcome(problem)
        else:
            self.set_outcome(ConvertedRecords(converted.data or None, converted.next_offset))

    def convert_elsewhere(self, call: Call, spool: Spool, enough_bytes: int) -> int:
        """Convert in a worker process, into a file, until *enough_bytes* are unpacked; returns the unpacked bytes.

        This runs in a thread; the reactor's thread releases the region.
        """
        try:
            data = self.region.pread(0, self.region.size_bytes)
            converted: ConvertedMessages = call("down_convert", data, *self._arguments, enough_bytes)
            records = spool.put(converted.data) if converted.data else None
        except KafkaError as problem:
            self.outcome = problem
        except OSError as problem:
            self.outcome = KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"converting records in {self.disk}: {describe_error(problem)}"
            )
        else:
            self.outcome = ConvertedRecords(records, converted.next_offset)
            return converted.unpacked_bytes
        return 0

    def postpone(self) -> None:
        """Set an empty outcome; the client fetches again."""
        self.outcome = ConvertedRecords(None, self._first_offset)

    def release_outcome(self) -> None:
        """Release an outcome that no response takes."""
        if isinstance(self.outcome, ConvertedRecords):
            self.outcome.release()
