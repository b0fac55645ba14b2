"""Random histories of a leader's log, and the copying of one log to another as a follower copies it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kafkacompat.storage.log.log import FetchedAppend, Log, RollNeededError
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.compression import Codec
from tests.storage.conftest import memory_store
from tests.storage.support import NOW_MS, Store, append_batch, append_marker, create_log, make_batch, roll_log

PLAIN, IDEMPOTENT, TRANSACTIONAL = (-1,), (1, 2), (3, 4, 5)
NEWEST_EPOCH = 100
CODECS = (Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD)


class Write(NamedTuple):
    """A batch to append."""

    producer_id: int
    records: int
    size_bytes: int
    age_ms: int
    codec: int


class End(NamedTuple):
    """A marker to append, also where no transaction is open."""

    producer_id: int
    is_commit: bool


class NewLeader(NamedTuple):
    """A new leader epoch."""


class Roll(NamedTuple):
    """A new segment, for which the batches give no reason."""


writes = st.builds(
    Write,
    st.sampled_from(PLAIN + IDEMPOTENT + TRANSACTIONAL),
    st.integers(1, 4),
    st.integers(0, 90),
    st.integers(-500, 500),
    st.sampled_from(CODECS),
)
ends = st.builds(End, st.sampled_from(TRANSACTIONAL), st.booleans())
histories = st.lists(st.one_of(writes, writes, writes, ends, ends, st.just(NewLeader())), max_size=60)
rolled_histories = st.lists(st.one_of(writes, writes, ends, st.just(NewLeader()), st.just(Roll())), max_size=60)
piece_sizes = st.lists(st.integers(1, 3000), min_size=1, max_size=10)
configs = st.fixed_dictionaries(
    {
        "segment_bytes": st.sampled_from([700, 2000, 1 << 20]),
        "index_interval_bytes": st.sampled_from([0, 200, 4096]),
        "segment_index_bytes": st.sampled_from([60, 10_000]),
        "segment_ms": st.sampled_from([300, 1 << 40]),
    }
)


class Leader:
    """A leader's log that lives through a history."""

    def __init__(self, config: dict[str, Any], *, store: Store | None = None) -> None:
        self.store = store or memory_store()
        self.log = create_log(self.store, **config)
        self.epoch = 0
        self._sequences: dict[int, int] = {}

    def live(self, history: list[Any]) -> None:
        """Take all steps."""
        for step in history:
            if isinstance(step, Write):
                self._write(step)
            elif isinstance(step, End):
                append_marker(self.log, Marker(step.producer_id, 0, 5, step.is_commit, 0), leader_epoch=self.epoch)
            elif isinstance(step, NewLeader):
                self.epoch += 1
            elif self.log.segments.active.size_bytes:
                roll_log(self.log)

    def _write(self, step: Write) -> None:
        producer: dict[str, Any] = {}
        if step.producer_id >= 0:
            sequence = self._sequences.get(step.producer_id, 0)
            self._sequences[step.producer_id] = sequence + step.records
            producer = {"producer_id": step.producer_id, "producer_epoch": 0, "base_sequence": sequence}
        data = make_batch(
            step.records,
            size_bytes=step.size_bytes,
            timestamp=NOW_MS + step.age_ms,
            codec=step.codec,
            transactional=step.producer_id in TRANSACTIONAL,
            **producer,
        )
        append_batch(self.log, data, leader_epoch=self.epoch, from_client=False)


def append_fetched(
    log: Log, records: bytes, *, leader_epoch: int = NEWEST_EPOCH, now_ms: int = NOW_MS
) -> FetchedAppend:
    """Append fetched batches, rolling as often as needed."""
    left, appended = memoryview(records), None
    while True:
        try:
            part = log.append_fetched(left, leader_epoch=leader_epoch, now_ms=now_ms)
        except RollNeededError:
            roll_log(log)
            continue
        appended = part if appended is None else appended.followed_by(part)
        left = left[part.size_bytes :]
        if not (part.batch_count and left):
            return appended


def copy_all(leader: Log, follower: Log, sizes: list[int]) -> None:
    """Copy the leader's log from the follower's end on, in pieces of these sizes."""
    for size_bytes in cycle(sizes):
        if follower.log_end_offset >= leader.log_end_offset:
            return
        append_fetched(follower, fetch_as_follower(leader, follower.log_end_offset, size_bytes))


def fetch_as_follower(leader: Log, offset: int, max_bytes: int) -> bytes:
    """Return the bytes that a follower's fetch gets."""
    region = leader.reader.read_for_follower(offset, max_bytes)
    assert region is not None
    data = region.pread(0, region.size_bytes)
    region.release()
    return data


def stored_bytes(log: Log) -> bytes:
    """Return all batches."""
    return b"".join(_segment_bytes(log))


def _segment_bytes(log: Log) -> Iterator[bytes]:
    for segment in log.segments:
        with segment.pin() as file:
            yield file.file.pread(segment.size_bytes, 0)


def list_aborted(log: Log) -> list[AbortedTransaction]:
    """Return the aborted transactions of all segments."""
    return [transaction for segment in log.segments for transaction in segment.aborted().since()]


def list_indexes(log: Log) -> list[tuple[Any, ...]]:
    """Return the indexes and counters of each segment."""
    return [
        (
            segment.base_offset,
            segment.size_bytes,
            list(segment.indexes()[0].relative_offsets),
            list(segment.indexes()[0].positions),
            list(segment.indexes()[1].timestamps),
            list(segment.indexes()[1].relative_offsets),
            segment.max_timestamp,
            segment.offset_of_max_timestamp,
            segment.first_timestamp if segment is log.segments.active else None,
        )
        for segment in log.segments
    ]


def list_knowledge(log: Log) -> dict[str, Any]:
    """Return the state of the log outside its segments."""
    first = log.producer_state.open.first
    return {
        "end": log.log_end_offset,
        "bytes": stored_bytes(log),
        "producers": dict(log.producer_state.producers.packed),
        "open": None if first is None else first.offset,
        "epochs": log.leader_epochs.entries,
        "aborted": list_aborted(log),
    }
