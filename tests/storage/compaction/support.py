"""Helpers that compact a log as the broker does, without pauses, and read the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafkacompat.storage.compaction import CleanedSegment, CleaningResult, compact
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.segment.transaction_index import AbortedTransaction, read_aborted
from kafkacompat.wire.record_batch import BatchHeader, NewRecord, Record, build_batch, read_header, read_records
from tests.storage.support import NOW_MS, Store, append_batch, append_marker, read_log, roll_log

MAP_BYTES = 1 << 20
COMPACTED: dict[str, Any] = {"cleanup_policy": frozenset({"compact"})}


class Left(NamedTuple):
    """A stored batch and its records."""

    header: BatchHeader
    records: list[Record]


def append_pairs(log: Log, *pairs: tuple[str | None, str | None], now_ms: int = NOW_MS, **kw: Any) -> int:
    """Append a batch of keys and values (None: a tombstone); returns its first offset."""
    records: list[NewRecord] = [
        (now_ms, None if key is None else key.encode(), None if value is None else value.encode(), [])
        for key, value in pairs
    ]
    return append_batch(log, build_batch(records, **kw), now_ms=now_ms, from_client=False).base_offset


def end_transaction(log: Log, producer_id: int, *, commit: bool, now_ms: int = NOW_MS, producer_epoch: int = 0) -> int:
    """Append a marker."""
    return append_marker(log, Marker(producer_id, producer_epoch, 0, commit, 0), now_ms=now_ms).base_offset


def aborted_of(store: Store) -> dict[str, list[AbortedTransaction]]:
    """Return the entries of the transaction indexes."""
    names = [name for name in store.files.list(store.path("t-0")) if name.endswith(".txnindex")]
    return {name[18:20]: read_aborted(store.files, store.path("t-0", name)) for name in names}


def compact_log(
    store: Store,
    log: Log,
    *,
    now_ms: int = NOW_MS,
    map_bytes: int = MAP_BYTES,
    load_factor: float = 0.9,
    stable_offset: int | None = None,
    end_turn: Callable[[], object] = lambda: None,
) -> CleaningResult | None:
    """Run one compaction; None if there is nothing to compact."""
    stable_offset = log.log_end_offset if stable_offset is None else stable_offset
    cleanable = log.compaction.find_cleanable(stable_offset=stable_offset, now_ms=now_ms)
    if cleanable is None:
        return None
    job = log.compaction.make_cleaning_job(cleanable, now_ms=now_ms, map_bytes=map_bytes, load_factor=load_factor)
    if job is None:
        return None
    for step in compact(store.files, job, end_turn):
        if isinstance(step, CleanedSegment):
            swap_in(log, step)
        elif isinstance(step, CleaningResult):
            log.cleaner_offset = step.end_offset
            return step
    raise AssertionError


def swap_in(log: Log, cleaned: CleanedSegment) -> None:
    """Swap a compacted segment in."""
    segment = log.compaction.prepare_swap(cleaned)
    replaced = log.compaction.swap_segments(cleaned, segment)
    log.compaction.complete_swap(segment, replaced)
    log.compaction.remove_replaced(replaced)


def roll_and_compact(store: Store, log: Log, **kw: Any) -> CleaningResult | None:
    """Roll, then compact the whole log."""
    if log.segments.active.size_bytes:
        roll_log(log)
    return compact_log(store, log, **kw)


def list_batches(log: Log) -> list[Left]:
    """Return every batch of the log, read fetch by fetch."""
    batches: list[Left] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = read_log(log, offset, 1)
        if not data:
            break
        batches.append(Left(header := read_header(data), list(read_records(data))))
        offset = header.last_offset + 1
    return batches


def _decode_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def list_records(log: Log) -> list[tuple[int, str | None, str | None]]:
    """Return offset, key and value of every record that is no marker."""
    return [
        (record.offset, _decode_text(record.key), _decode_text(record.value))
        for batch in list_batches(log)
        if not batch.header.is_control
        for record in batch.records
    ]
