"""Rebuilding a transaction index that cannot be read from the segment's batches."""

from __future__ import annotations

import logging

from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.producers.recovery import find_open_transactions
from kafkacompat.storage.producers.transaction_replay import TransactionReplay
from kafkacompat.storage.segment.corruption import split_at_damage
from kafkacompat.storage.segment.header_scan import scan_headers
from kafkacompat.storage.segment.indexes import CorruptIndexError
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import TXN_INDEX_SUFFIX

log = logging.getLogger(__name__)


def ensure_transaction_index(state: LogState, segment: Segment) -> None:
    """Load the aborted transactions of a segment; if the file cannot be read, rebuild and write it. [disk]"""
    try:
        segment.aborted()
    except CorruptIndexError as problem:
        log.warning("%s: %s; it is rebuilt", segment.files.path(TXN_INDEX_SUFFIX), problem)
        _rebuild_index(state, segment)


def _rebuild_index(state: LogState, segment: Segment) -> None:
    earlier = [other for other in state.segments if other.base_offset < segment.base_offset]
    replay = TransactionReplay(find_open_transactions(state.files, state.directory, earlier, segment.base_offset))
    with segment.pin() as file:
        for start, end, _ in split_at_damage(segment.corrupt, 0, segment.size_bytes):
            for position, header in scan_headers(file.file, start, end):
                replay.follow(file.file, position, header)
    segment.transactions.replace(replay.aborted)
