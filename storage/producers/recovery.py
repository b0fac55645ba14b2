"""Rebuilding a log's producer state from the latest readable snapshot and the batches after it."""

from __future__ import annotations

from collections.abc import Sequence

from kafkacompat.storage.files.filesystem import File, Files
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.snapshots import CorruptSnapshotError, Snapshots
from kafkacompat.storage.producers.state import ProducerState
from kafkacompat.storage.segment.corruption import is_sound_batch, split_at_damage
from kafkacompat.storage.segment.header_scan import scan_headers
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segments import Segments
from kafkacompat.wire.record_batch import BatchHeader, read_records

_COORDINATOR_EPOCH = slice(2, 6)


def rebuild_producer_state(
    files: Files,
    directory: str,
    segments: Segments,
    end_offset: int,
    now_ms: int,
    config: LogConfig,
    clean_shutdown: bool,
    high_watermark: int | None = None,
) -> ProducerState:
    """Return the state at `end_offset`; remove snapshots that cannot be read or belong to no segment. [disk]

    Transactions whose markers are not below `high_watermark` (default: the end) stay open, as far as the batches after the
    snapshot show them.
    """
    snapshots = Snapshots(files, directory)
    state = ProducerState()
    start = _load_latest(snapshots, state, end_offset)
    if start is None:
        # A cleanly closed log without a snapshot never had producers.
        start = end_offset if clean_shutdown else segments[0].base_offset
    for segment in segments.since(start) if start < end_offset else ():
        _replay_segment(segment, state, start)
    state.open.remove_decided(end_offset if high_watermark is None else high_watermark)
    state.remove_expired(now_ms, config.producer_id_expiration_ms)
    _remove_strays(snapshots, {segment.base_offset for segment in segments})
    return state


def _load_latest(snapshots: Snapshots, state: ProducerState, end_offset: int) -> int | None:
    for offset in reversed(snapshots.offsets()):
        if offset <= end_offset:
            try:
                state.restore(snapshots.read(offset))
                return offset
            except CorruptSnapshotError:
                pass
        snapshots.remove(offset)
    return None


def find_open_transactions(files: Files, directory: str, earlier: Sequence[Segment], offset: int) -> dict[int, int]:
    """Return the open transactions at `offset`, where the `earlier` segments end: producer id -> first offset. [disk]"""
    snapshots = Snapshots(files, directory)
    state, start = ProducerState(), earlier[0].base_offset if earlier else offset
    for snapshot_offset in reversed([known for known in snapshots.offsets() if start <= known <= offset]):
        try:
            state.restore(snapshots.read(snapshot_offset))
            start = snapshot_offset
            break
        except CorruptSnapshotError:
            pass
    for segment in Segments(earlier).since(start) if start < offset else ():
        _replay_segment(segment, state, start)
    open_by_producer = {
        producer.producer_id: producer.current_txn_first_offset for producer in state.producers.values()
    }
    return {producer_id: first_offset for producer_id, first_offset in open_by_producer.items() if first_offset >= 0}


def _replay_segment(segment: Segment, state: ProducerState, start: int) -> None:
    file = segment.pin()
    try:
        position = segment.indexes()[0].lookup(start)
        for span_start, end, _ in split_at_damage(segment.corrupt, position, segment.size_bytes):
            for batch_position, header in scan_headers(file.file, span_start, end):
                if header.producer_id >= 0 and header.last_offset >= start:
                    _replay_batch(file.file, (segment.base_offset, batch_position), header, state)
    finally:
        file.release()


def _replay_batch(file: File, place: tuple[int, int], header: BatchHeader, state: ProducerState) -> None:
    position = place[1]
    if not header.is_control:
        state.add_batch(header, header.base_offset, place)
    elif is_sound_batch(file, position, header):  # a damaged marker does not say which transaction it ends
        for record in read_records(file.pread(header.size_bytes, position)):
            state.end_transaction(header, int.from_bytes((record.value or b"")[_COORDINATOR_EPOCH], "big", signed=True))


def _remove_strays(snapshots: Snapshots, bases: set[int]) -> None:
    """Keep a snapshot for each segment, and the latest of all, which a clean close has written."""
    snapshots.remove(*(offset for offset in snapshots.offsets()[:-1] if offset not in bases))
