"""Recovering the producers of a log."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kafkacompat.wire.record_batch import assemble_batch, build_batch, read_header
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    fill_log,
    make_batch,
    name_file,
    reopen_log,
    rewrite_file,
)

PRODUCED: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}


def test_producers_are_known_again(store: Store) -> None:
    log = create_log(store, segment_bytes=400)
    for index in range(30):
        append_batch(log, make_batch(base_sequence=index, **PRODUCED))
    log.release()
    again = reopen_log(store, segment_bytes=400)
    assert len(again.producer_state.producers[7].batches) <= 5
    retried = append_batch(again, make_batch(base_sequence=29, **PRODUCED))
    assert (retried.base_offset, retried.duplicate) == (29, True)
    assert append_batch(again, make_batch(base_sequence=30, **PRODUCED)).base_offset == 30
    again.close()


def test_without_usable_snapshots_producers_come_from_the_log(store: Store) -> None:
    log = create_log(store, segment_bytes=400)
    for index in range(12):
        append_batch(log, make_batch(base_sequence=index, **PRODUCED))
    log.release()
    for name in store.files.list(store.path("t-0")):
        if name.endswith(".snapshot"):
            rewrite_file(store, f"t-0/{name}", lambda data: data[:-1])
    again = reopen_log(store, segment_bytes=400)
    assert [batch.last_sequence for batch in again.producer_state.producers[7].batches] == [7, 8, 9, 10, 11]
    again.close()


def test_a_snapshot_beyond_the_logs_end_is_not_believed(store: Store) -> None:
    log = create_log(store)
    for index in range(4):
        append_batch(log, make_batch(base_sequence=index, **PRODUCED))
    log.close()
    assert store.files.exists(store.path(name_file(4, ".snapshot")))
    rewrite_file(store, name_file(0, ".log"), lambda data: data[:-1])
    again = reopen_log(store)
    assert again.log_end_offset == 3
    assert not store.files.exists(store.path(name_file(4, ".snapshot")))
    assert again.producer_state.producers[7].batches[-1].last_sequence == 2
    again.close()


def test_a_clean_log_without_snapshots_is_not_read_through(store: Store) -> None:
    log = create_log(store)
    append_batch(log, make_batch(base_sequence=0, **PRODUCED))
    log.close()
    store.files.remove(store.path(name_file(1, ".snapshot")))
    again = reopen_log(store, clean=True)
    assert len(again.producer_state) == 0
    again.close()


def test_expired_producers_are_not_loaded(store: Store) -> None:
    log = create_log(store)
    append_batch(log, make_batch(base_sequence=0, timestamp=NOW_MS - 1000, **PRODUCED))
    log.close()
    again = reopen_log(store, clean=True, producer_id_expiration_ms=1000)
    assert len(again.producer_state) == 0
    again.close()


def test_a_snapshot_for_each_segment_and_the_latest_are_kept(store: Store) -> None:
    log = create_log(store, segment_bytes=400)
    fill_log(log, 12)
    bases = [segment.base_offset for segment in log.segments]
    log.close()
    rewrite_file(
        store, name_file(bases[1] + 1, ".snapshot"), lambda _: store.files.read(store.path(name_file(12, ".snapshot")))
    )
    again = reopen_log(store, clean=True)
    kept = [int(name[:20]) for name in store.files.list(store.path("t-0")) if name.endswith(".snapshot")]
    assert kept == [*bases[1:], 12]
    again.close()


@pytest.mark.parametrize("coordinator_epoch", [11, -11])
def test_markers_end_transactions_also_when_read_again(store: Store, coordinator_epoch: int) -> None:
    log = create_log(store)
    open_transaction = make_batch(base_sequence=0, transactional=True, **PRODUCED)
    append_batch(log, open_transaction, from_client=False)
    key, value = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, coordinator_epoch)
    marker = build_batch([(NOW_MS, key, value, [])], transactional=True, control=True, producer_id=7, producer_epoch=1)
    log.release()
    rewrite_file(
        store,
        name_file(0, ".log"),
        lambda data: data + assemble_batch(read_header(marker)._replace(base_offset=1), marker[61:]),
    )
    again = reopen_log(store)
    producer = again.producer_state.producers[7]
    assert (producer.producer_epoch, producer.coordinator_epoch) == (1, max(0, coordinator_epoch))
    assert producer.current_txn_first_offset == -1
    again.close()
