"""Transactions of several producers under random use, compared with a list, and read by a read_committed consumer.

Each case is one seed; `STORAGE_SEEDS=7,8 pytest …` runs those seeds. The consumer gets every record up to the last stable
offset, fetch by fetch, except those of open and aborted transactions.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from kafkacompat.storage.log.log import Log, OffsetPosition
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.transaction_replay import ABORT as ABORT_TYPE
from kafkacompat.storage.producers.transaction_replay import read_marker_type
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.record_batch import read_header, split_batches
from tests.fakes.memory_files import MemoryFiles
from tests.storage.conftest import memory_store
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    append_marker,
    create_log,
    make_batch,
    read_headers,
    reopen_log,
    roll_log,
)

SEEDS = [int(seed) for seed in os.environ.get("STORAGE_SEEDS", "").split(",") if seed] or range(40)
STEPS = 100
PRODUCERS = (1, 2, 3, 4)
PLAIN = 9
COMMIT, ABORT = "commit", "abort"


@dataclass(frozen=True)
class Entry:
    """A batch of records or a marker, with the position after it."""

    offset: int
    last_offset: int
    producer_id: int
    sequence: int
    ends: str
    end: OffsetPosition


@dataclass
class Model:
    """The expected log; `start` is its log start offset."""

    entries: list[Entry] = field(default_factory=list)
    start: int = 0

    @property
    def end(self) -> int:
        return self.entries[-1].last_offset + 1 if self.entries else 0

    def fates(self) -> dict[int, str]:
        """The outcome of each transactional batch, by offset; "" while its transaction is open."""
        fates: dict[int, str] = {}
        for entry in self.entries:
            if entry.ends:
                for earlier in self.entries:
                    is_earlier = earlier.offset < entry.offset and earlier.producer_id == entry.producer_id
                    if is_earlier and fates.get(earlier.offset) == "":
                        fates[earlier.offset] = f"{entry.ends} {entry.offset}"
            elif entry.producer_id in PRODUCERS:
                fates[entry.offset] = ""
        return fates

    def stable_offset(self, high_watermark: int) -> int:
        """The last stable offset."""
        undecided = [
            offset for offset, fate in self.fates().items() if not fate or int(fate.split()[1]) >= high_watermark
        ]
        return max(min([high_watermark, *undecided]), self.start)

    def committed(self, high_watermark: int) -> list[int]:
        """The offsets of batches that a read_committed consumer gets."""
        fates, end = self.fates(), self.stable_offset(high_watermark)
        return [
            entry.offset
            for entry in self.entries
            if not entry.ends
            and self.start <= entry.last_offset < end
            and not fates.get(entry.offset, "").startswith(ABORT)
        ]

    def aborted(self) -> set[tuple[int, int, int]]:
        """Aborted transactions: producer, first offset, offset of the marker."""
        first_offsets: dict[tuple[int, int], int] = {}
        producers = {entry.offset: entry.producer_id for entry in self.entries}
        for offset, fate in self.fates().items():
            if fate.startswith(ABORT):
                first_offsets.setdefault((producers[offset], int(fate.split()[1])), offset)
        return {(producer_id, first, last) for (producer_id, last), first in first_offsets.items()}


class Run:
    """One random life of a log."""

    def __init__(self, store: Store, seed: int) -> None:
        self.random = Random(seed)
        self.store = store
        self.config: dict[str, Any] = {
            "segment_bytes": self.random.choice([700, 2000, 20_000]),
            "index_interval_bytes": self.random.choice([0, 200, 4096]),
        }
        self.log: Log = create_log(store, **self.config)
        self.log.maintenance.make_durable()
        self.model = Model()
        self.high_watermark = self.log.end_position()
        self.checkpointed = 0
        steps: dict[Callable[[], None], int] = {
            self.write: 60,
            self.write_plain: 8,
            self.finish: 35,
            self.advance: 15,
            self.roll: 5,
            self.flush: 5,
            self.truncate: 2,
            self.delete_records: 2,
            self.retain: 2,
            self.reopen_clean: 2,
            self.kill: 3,
            self.power_failure: 3,
        }
        self.steps = self.random.choices(list(steps), list(steps.values()), k=STEPS)

    def go(self) -> None:
        for number, step in enumerate(self.steps):
            step()
            self.check(f"after step {number}: {step.__name__}")
        self.log.close()

    # --- steps ---

    def write(self) -> None:
        """Append a transactional batch."""
        self._write(self.random.choice(PRODUCERS), transactional=True)

    def write_plain(self) -> None:
        """Append a batch without a transaction."""
        self._write(PLAIN, transactional=False)

    def _write(self, producer_id: int, *, transactional: bool) -> None:
        known = [entry for entry in self.model.entries if entry.producer_id == producer_id and not entry.ends]
        sequence = known[-1].sequence + known[-1].last_offset - known[-1].offset + 1 if known else 0
        data = make_batch(
            self.random.randint(1, 3),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=transactional,
        )
        result = append_batch(self.log, data, from_client=False)
        self.model.entries.append(Entry(result.base_offset, result.last_offset, producer_id, sequence, "", result.end))

    def finish(self) -> None:
        """Append a marker; a coordinator may send one that ends nothing."""
        producer_id, commits = self.random.choice(PRODUCERS), self.random.random() < 0.4
        result = append_marker(self.log, Marker(producer_id, 0, 5, commits, 0))
        ends = COMMIT if commits else ABORT
        self.model.entries.append(Entry(result.base_offset, result.base_offset, producer_id, -1, ends, result.end))

    def advance(self) -> None:
        """Raise the high watermark."""
        places = [entry.end for entry in self.model.entries if entry.end.offset > self.high_watermark.offset]
        if places:
            self.high_watermark = self.random.choice([places[-1], self.random.choice(places)])
            self.log.producer_state.open.remove_decided(self.high_watermark.offset)

    def _see_all(self) -> None:
        self.high_watermark = self.log.end_position()

    def roll(self) -> None:
        if self.log.segments.active.size_bytes:
            roll_log(self.log)

    def flush(self) -> None:
        self.checkpointed = self.log.flush()

    def truncate(self) -> None:
        if self.model.entries:
            offset = self.random.choice(self.model.entries[-6:]).offset
            if offset >= self.model.start:
                self.log.trimmer.truncate_to(offset)
                self._cut(offset)

    def _cut(self, end: int) -> None:
        self.model.entries = [entry for entry in self.model.entries if entry.last_offset < end]
        self.checkpointed = min(self.checkpointed, end)
        self._see_all()

    def delete_records(self) -> None:
        self.model.start = self.random.randint(self.model.start, self.high_watermark.offset)
        self.log.trimmer.advance_log_start_offset(self.model.start)

    def retain(self) -> None:
        """Delete records in spite of open transactions: readers continue at the log start offset."""
        segments = list(self.log.segments)
        count = self.random.randrange(len(segments))
        if count and segments[count].base_offset <= self.high_watermark.offset:
            self.log.trimmer.detach(segments[:count])
            self.log.trimmer.delete_segments(segments[:count])
            self.model.start = max(self.model.start, segments[count].base_offset)

    def reopen_clean(self) -> None:
        self.log.close()
        self._open(clean=True)

    def kill(self) -> None:
        self.log.release()
        self._open()

    def power_failure(self) -> None:
        assert isinstance(self.store.files, MemoryFiles)
        self.log.release()
        self.store.files.crash(tear_last_write=self.random.choice([None, 1, 40]))
        self._open()

    def _open(self, clean: bool = False) -> None:
        self.log = reopen_log(
            self.store,
            clean=clean,
            recovery_point=self.checkpointed,
            log_start_offset=self.model.start,
            **self.config,
        )
        assert self.log.log_end_offset >= self.checkpointed
        if self.log.log_end_offset < self.model.end:
            self._cut(self.log.log_end_offset)
        self.model.start = self.log.log_start_offset
        self._see_all()

    # --- reading ---

    def check(self, when: str) -> None:
        end = self.high_watermark.offset
        assert self.log.committed.find_stable_end(self.high_watermark).offset == self.model.stable_offset(end), when
        if self.random.random() < 0.3:
            assert self.read_all() == self.model.committed(end), when

    def read_all(self) -> list[int]:
        """Return the offsets of the batches that a consumer keeps."""
        offset = self.random.choice([self.model.start, self.model.start, self._some_offset()])
        last_offsets = {entry.offset: entry.last_offset for entry in self.model.entries}
        kept = [
            base_offset
            for base_offset in self.model.committed(self.high_watermark.offset)
            if last_offsets[base_offset] < offset
        ]
        while True:
            limit = self.random.choice([1, 300, 1000, 10**6])
            committed_read = self.log.read_committed(offset, limit, self.high_watermark)
            if committed_read.region is None:
                assert not committed_read.aborted
                return kept
            data = committed_read.region.pread(0, committed_read.region.size_bytes)
            committed_read.region.release()
            self._check_aborted(committed_read.aborted, offset)
            kept += self._kept(data, committed_read.aborted)
            offset = read_headers(data)[-1].last_offset + 1

    def _some_offset(self) -> int:
        later = [entry.offset for entry in self.model.entries if entry.offset >= self.model.start]
        return self.random.choice([*later, self.model.end]) if later else self.model.start

    def _check_aborted(self, aborted: list[AbortedTransaction], offset: int) -> None:
        last_offsets = [transaction.last_offset for transaction in aborted]
        assert last_offsets == sorted(last_offsets)
        assert all(transaction.last_offset >= offset for transaction in aborted)
        assert set(last_offsets) <= {last for _, _, last in self.model.aborted()}

    @staticmethod
    def _kept(data: bytes, aborted: list[AbortedTransaction]) -> list[int]:
        """Filter as consumers do: skip a producer's batches from the transaction's first offset to its marker."""
        waiting = sorted(aborted, key=lambda transaction: transaction.first_offset)
        aborting: set[int] = set()
        kept = []
        for batch in split_batches(data):
            header = read_header(batch)
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborting.add(waiting.pop(0).producer_id)
            if not header.is_control and header.producer_id not in aborting:
                kept.append(header.base_offset)
            if header.is_control and read_marker_type(batch) == ABORT_TYPE:
                aborting.discard(header.producer_id)
        return kept


@pytest.mark.parametrize("seed", SEEDS)
def test_readers_get_committed_batches_only(seed: int) -> None:
    Run(memory_store(), seed).go()


def test_a_marker_is_byte_for_byte_as_kafka_writes_it() -> None:
    store = memory_store()
    log = create_log(store)
    append_marker(log, Marker(7, 1, 0, is_commit=False, transaction_version=2))
    region = log.read(0, 1000)
    assert region is not None
    record = region.pread(61, 100)
    region.release()
    assert record.hex() == "20000000080000" + "00000c00000000000000"
    (header,) = [read_header(store.files.read(store.path("t-0", f"{0:020d}.log")))]
    assert (header.attributes, header.base_sequence, header.producer_id, header.producer_epoch) == (0x30, -1, 7, 1)
    assert (header.base_timestamp, header.max_timestamp, header.record_count) == (NOW_MS, NOW_MS, 1)
