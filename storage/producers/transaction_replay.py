"""Finding the aborted transactions of a log from its batches and markers."""

from __future__ import annotations

from collections.abc import Mapping

from kafkacompat.storage.files.filesystem import File
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import BatchHeader, read_records

ABORT, COMMIT = 0, 1
_MARKER_TYPE = slice(2, 4)


def read_marker_type(batch: Buffer) -> int | None:
    """Return the type of a control batch's record; None without one, as in a batch that compaction emptied."""
    record = next(read_records(batch), None)
    kind = (record.key or b"")[_MARKER_TYPE] if record else b""
    return int.from_bytes(kind, "big") if len(kind) == 2 else None


class TransactionReplay:
    """Follows a segment's batches and collects its `aborted` transactions.

    `open_transactions` are those that began before the segment: producer id -> first offset.
    """

    def __init__(self, open_transactions: Mapping[int, int]) -> None:
        self._open = dict(open_transactions)
        self.aborted: list[AbortedTransaction] = []

    def follow(self, file: File, position: int, header: BatchHeader) -> None:
        """Follow the next batch, reading its record if it is a marker. Raises OSError and MalformedError."""
        if header.is_control:
            self._end(header, read_marker_type(file.pread(header.size_bytes, position)))
        elif header.is_transactional:
            self._open.setdefault(header.producer_id, header.base_offset)

    def _end(self, header: BatchHeader, kind: int | None) -> None:
        if kind not in (ABORT, COMMIT):
            return
        first_offset = self._open.pop(header.producer_id, None)
        if kind == ABORT and first_offset is not None:
            stable_offset = min(self._open.values(), default=header.last_offset + 1)
            self.aborted.append(AbortedTransaction(header.producer_id, first_offset, header.last_offset, stable_offset))
