"""Finding out again what a log knew of its producers: the latest usable snapshot and the batches behind it."""

from __future__ import annotations

from collections.abc import Sequence

from kafkacompat.storage.files.filesystem import File, Files
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.snapshots import CorruptSnapshotError, Snapshots
from kafkacompat.storage.producers.state import ProducerState
from kafkacompat.storage.segment.corruption import is_sound, spans
from kafkacompat.storage.segment.lookup import scan_headers
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
) -> ProducerState:
    """The state at `end_offset`; snapshots that cannot be used or belong to no segment are removed. [disk]"""
    snapshots = Snapshots(files, directory)
    state = ProducerState()
    start = _load_latest(snapshots, state, end_offset)
    if start is None:
        # A log that was closed cleanly without a snapshot never had producers to remember.
        start = end_offset if clean_shutdown else segments[0].base_offset
    for segment in segments.since(start) if start < end_offset else ():
        _replay(segment, state, start)
    state.open.settle(end_offset)
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


def open_transactions(files: Files, directory: str, earlier: Sequence[Segment], offset: int) -> dict[int, int]:
    """The transactions that are undecided where `earlier` segments end, at `offset`: producer id -> first offset. [disk]"""
    snapshots = Snapshots(files, directory)
    state, start = ProducerState(), earlier[0].base_offset if earlier else offset
    for known in reversed([each for each in snapshots.offsets() if start <= each <= offset]):
        try:
            state.restore(snapshots.read(known))
            start = known
            break
        except CorruptSnapshotError:
            pass
    for segment in Segments(earlier).since(start) if start < offset else ():
        _replay(segment, state, start)
    found = {each.producer_id: each.current_txn_first_offset for each in state.producers.values()}
    return {producer_id: first_offset for producer_id, first_offset in found.items() if first_offset >= 0}


def _replay(segment: Segment, state: ProducerState, start: int) -> None:
    file = segment.pin()
    try:
        position = segment.indexes()[0].lookup(start)
        for span_start, end, _ in spans(segment.corrupt, position, segment.size_bytes):
            for batch_position, header in scan_headers(file.file, span_start, end):
                if header.producer_id >= 0 and header.last_offset >= start:
                    _add(file.file, (segment.base_offset, batch_position), header, state)
    finally:
        file.release()


def _add(file: File, place: tuple[int, int], header: BatchHeader, state: ProducerState) -> None:
    position = place[1]
    if not header.is_control:
        state.add(header, header.base_offset, place)
    elif is_sound(file, position, header):  # else what it would end cannot be told
        for record in read_records(file.pread(header.size_bytes, position)):
            state.end_transaction(header, int.from_bytes((record.value or b"")[_COORDINATOR_EPOCH], "big", signed=True))


def _remove_strays(snapshots: Snapshots, bases: set[int]) -> None:
    """Keep one snapshot a segment, and the latest of all, which a clean close wrote."""
    snapshots.remove(*(offset for offset in snapshots.offsets()[:-1] if offset not in bases))
