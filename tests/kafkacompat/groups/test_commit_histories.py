"""Random commits, with and without transactions: the visible offsets follow from the log, compacted or not."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.wire.record_batch import read_header, read_records, split_batches
from tests.kafkacompat.groups.histories import History
from tests.kafkacompat.groups.producers import LateLog, ProducerWorld
from tests.storage.compaction.support import COMPACTED, compact_log
from tests.storage.conftest import memory_store
from tests.storage.support import NOW_MS, append_batch, append_marker, create_log, read_log, roll_log

KEPT_MS = 1000


@pytest.mark.parametrize("seed", range(60))
def test_random_commits_agree_with_the_log(seed: int) -> None:
    History(seed, ProducerWorld(LateLog())).live(80)


class StoredLog(LateLog):
    """One partition in segments of few records, which are compacted now and then."""

    def __init__(self, seed: int) -> None:
        super().__init__(partition_count=1)
        self.rng = Random(seed)
        self.files = memory_store()
        self.stored = create_log(self.files, segment_bytes=400, delete_retention_ms=KEPT_MS, **COMPACTED)
        self.now_ms = NOW_MS
        self.compactions = 0

    def store(self, partition: int, batch: bytes) -> None:
        header = read_header(batch)
        if header.is_control:
            (record,) = read_records(batch)
            is_commit = record.key == b"\0\0\0\1"
            append_marker(self.stored, Marker(header.producer_id, 0, 0, is_commit, 0), now_ms=self.now_ms)
        else:
            append_batch(self.stored, batch, now_ms=self.now_ms, from_client=False)
        if self.rng.random() < (0.5 if header.is_control else 0.1):
            self.compact()

    def compact(self) -> None:
        """Compact the records below the first open transaction; half of the time drop earlier tombstones."""
        self.now_ms += self.rng.choice([0, 2 * KEPT_MS])
        if self.stored.segments.active.size_bytes:
            roll_log(self.stored)
        still_open = self.stored.producer_state.open
        still_open.remove_decided(self.stored.log_end_offset)
        stable_offset = still_open.first.offset if still_open.first is not None else None
        done = compact_log(self.files, self.stored, now_ms=self.now_ms, stable_offset=stable_offset)
        self.compactions += done is not None

    def read(self, partition: int) -> Iterator[bytes]:
        offset = self.stored.log_start_offset
        while data := read_log(self.stored, offset):
            for batch in split_batches(data):
                offset = read_header(batch).last_offset + 1
                yield bytes(batch)


@pytest.mark.parametrize("seed", range(30))
def test_random_commits_survive_compactions(seed: int) -> None:
    log = StoredLog(seed)
    history = History(seed, ProducerWorld(log))
    for _ in range(3):
        history.live(30)
        log.compact()
        history.world = history.world.again()
        history.check()
    assert log.compactions >= 3
