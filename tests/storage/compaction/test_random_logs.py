"""Random logs, compacted repeatedly, compared with a model that keeps every record in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.record_batch import Record, crc_matches
from tests.storage.compaction.support import COMPACTED, append_pairs, end_transaction, list_batches
from tests.storage.compaction.support import compact_log as compact
from tests.storage.conftest import memory_store
from tests.storage.support import NOW_MS, create_log, read_log, reopen_log, roll_log

RETENTION_MS = 100

pair = st.tuples(st.sampled_from("abcdef"), st.none() | st.text("xyz", max_size=3))
step = st.one_of(
    st.tuples(
        st.just("put"),
        st.lists(pair, min_size=1, max_size=4),
        st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.ZSTD]),
        st.sampled_from([None, None, 1, 2]),
    ),
    st.tuples(st.just("end"), st.sampled_from([1, 2]), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("compact"), st.integers(0, 150), st.integers(1, 8), st.sampled_from([0, 0, 50])),
    st.tuples(st.just("restart")),
)


@dataclass
class Model:
    """Every appended record, and the outcome of its transaction (None: open)."""

    records: dict[int, Record] = field(default_factory=dict)
    committed: dict[int, bool | None] = field(default_factory=dict)
    open: dict[int, list[int]] = field(default_factory=dict)

    @property
    def stable_offset(self) -> int | None:
        """The first offset of the earliest open transaction."""
        return min((offsets[0] for offsets in self.open.values()), default=None)

    def lasts(self, end_offset: int) -> dict[int, Record]:
        """Return the last committed record of each key before an offset."""
        last_records: dict[bytes | None, Record] = {}
        for offset, record in self.records.items():
            if offset < end_offset and self.committed[offset]:
                last_records[record.key] = record
        return {record.offset: record for record in last_records.values()}


class World:
    """A log and its model."""

    def __init__(self) -> None:
        self.store = memory_store()
        self.model = Model()
        self.now_ms = NOW_MS
        self.sequences: dict[int, int] = {}
        self.config = {"delete_retention_ms": RETENTION_MS, "segment_bytes": 700, **COMPACTED}
        self.log: Log = create_log(self.store, **self.config)

    def put(self, pairs: list[tuple[str, str | None]], codec: Codec, producer_id: int | None) -> None:
        options: dict[str, Any] = {"codec": codec}
        if producer_id is not None:
            sequence = self.sequences.get(producer_id, 0)
            options |= {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
            options["transactional"] = True
            self.sequences[producer_id] = sequence + len(pairs)
        first = append_pairs(self.log, *pairs, now_ms=self.now_ms, **options)
        offsets = list(range(first, first + len(pairs)))
        for offset, (key, value) in zip(offsets, pairs, strict=True):
            content = None if value is None else value.encode()
            self.model.records[offset] = Record(offset, self.now_ms, key.encode(), content, [])
            self.model.committed[offset] = True if producer_id is None else None
        if producer_id is not None:
            self.model.open.setdefault(producer_id, []).extend(offsets)
        self.now_ms += 1

    def end(self, producer_id: int, commit: bool) -> None:
        if producer_id in self.model.open:
            end_transaction(self.log, producer_id, commit=commit, now_ms=self.now_ms)
            for offset in self.model.open.pop(producer_id):
                self.model.committed[offset] = commit

    def roll(self) -> None:
        if self.log.segments.active.size_bytes:
            roll_log(self.log)

    def restart(self) -> None:
        """Open the log again, as after a crash with everything on the disk."""
        offset = self.log.cleaner_offset
        self.log.flush()
        self.log.release()
        self.log = reopen_log(self.store, recovery_point=self.log.recovery_point, **self.config)
        self.log.cleaner_offset = offset

    def compact(self, later_ms: int, most_keys: int, lag_ms: int) -> None:
        self.now_ms += later_ms
        self.log.config = LogConfig(**{**self.config, "min_compaction_lag_ms": lag_ms})
        self.log.flush()
        stable = self.model.stable_offset
        before = self.seen()
        result = compact(
            self.store,
            self.log,
            now_ms=self.now_ms,
            map_bytes=24 * most_keys,
            load_factor=0.999,
            stable_offset=self.log.log_end_offset if stable is None else stable,
        )
        if result is not None:
            self.check(before, result.end_offset)

    def seen(self) -> dict[int, Record]:
        records: list[Record] = []
        for batch in list_batches(self.log):
            assert crc_matches(read_log(self.log, batch.header.base_offset, 1), batch.header)
            if not batch.header.is_control:
                records += batch.records
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        return {record.offset: record for record in records}

    def check(self, before: dict[int, Record], end_offset: int) -> None:
        after, lasts = self.seen(), self.model.lasts(end_offset)
        assert after.items() <= before.items()
        for offset, record in after.items():
            assert record == self.model.records[offset]
            assert offset in lasts or offset >= end_offset
        for offset, record in before.items():
            stays = offset in lasts and record.value is not None
            if stays or (offset >= end_offset and self.model.committed[offset] is not False):
                assert offset in after
            elif offset not in after and record.value is None and offset in lasts:
                assert self.now_ms >= record.timestamp + RETENTION_MS
        assert (self.log.log_start_offset, self.log.cleaner_offset) == (0, end_offset)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(step, min_size=5, max_size=60))
def test_of_each_key_the_last_record_stays(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    for name, *arguments in steps:
        getattr(world, name)(*arguments)
    for producer_id in list(world.model.open):
        world.end(producer_id, False)
    world.roll()
    while (world.log.cleaner_offset or 0) < world.log.log_end_offset:
        world.compact(0, 4, 0)
        if world.log.compaction.find_cleanable(stable_offset=world.log.log_end_offset, now_ms=world.now_ms) is None:
            break
    for _ in range(3):
        world.put([("a", "last")], Codec.NONE, None)
        world.roll()
        world.compact(RETENTION_MS, 100, 0)
    assert all(record.value is not None for record in world.seen().values())
    assert all(offset in world.model.lasts(world.log.log_end_offset) for offset in world.seen())
    state = {producer: world.log.producer_state.producers[producer].next_sequence() for producer in world.sequences}
    assert state == world.sequences
