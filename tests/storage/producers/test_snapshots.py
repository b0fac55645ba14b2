"""Producer snapshot files."""

from __future__ import annotations

import struct

import pytest

from kafkacompat.storage.producers.producer import PRODUCER_ENTRY, Producer, StoredBatch
from kafkacompat.storage.producers.snapshots import CorruptSnapshotError, Snapshots, decode_snapshot
from kafkacompat.storage.producers.snapshots import encode_snapshot as encode_pieces
from kafkacompat.wire.checksum import crc32c
from tests.storage.support import Store


def pack_entries(*producers: Producer) -> list[bytes]:
    return [producer.pack()[: PRODUCER_ENTRY.size] for producer in producers]


def encode_snapshot(producers: list[Producer]) -> bytes:
    return b"".join(encode_pieces(pack_entries(*producers)))


def make_producer(producer_id: int, *batches: StoredBatch) -> Producer:
    made = Producer(producer_id)
    if batches:
        made.producer_epoch, made.batches, made.last_timestamp = 3, list(batches), batches[-1].timestamp
    return made


def test_the_bytes_are_kafkas() -> None:
    made = make_producer(7, StoredBatch(1, 1, 0, 5), StoredBatch(4, 12, 2, 1000))
    made.coordinator_epoch, made.current_txn_first_offset = 9, 10
    entry = struct.pack(">qhiqiqiq", 7, 3, 4, 12, 2, 1000, 9, 10)
    body = struct.pack(">i", 1) + entry
    assert encode_snapshot([made]) == struct.pack(">hI", 1, crc32c(body)) + body


def test_a_producer_without_batches_has_kafkas_blanks() -> None:
    data = encode_snapshot([make_producer(8)])
    assert data[10:] == struct.pack(">qhiqiqiq", 8, -1, -1, -1, 0, -1, -1, -1)


def test_the_last_batch_comes_back() -> None:
    (again, idle) = decode_snapshot(
        encode_snapshot([make_producer(7, StoredBatch(1, 1, 0, 5), StoredBatch(4, 12, 2, 1000)), make_producer(8)])
    )
    assert (again.producer_id, again.producer_epoch, again.last_timestamp) == (7, 3, 1000)
    assert again.batches == [StoredBatch(4, 12, 2, 1000)]
    assert (idle.producer_id, idle.producer_epoch, idle.batches) == (8, -1, [])


@pytest.mark.parametrize("cut", range(len(encode_snapshot([make_producer(7)]))))
def test_a_snapshot_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(encode_snapshot([make_producer(7)])[:cut])


def test_a_flipped_bit_is_noticed() -> None:
    data = bytearray(encode_snapshot([make_producer(7, StoredBatch(4, 12, 2, 1000))]))
    for position in range(len(data)):
        data[position] ^= 1
        with pytest.raises(CorruptSnapshotError):
            decode_snapshot(bytes(data))
        data[position] ^= 1


def test_files_are_named_by_offset(store: Store) -> None:
    snapshots = Snapshots(store.files, store.root)
    snapshots.write(20, pack_entries(make_producer(8)))
    snapshots.write(3, pack_entries(make_producer(7)))
    snapshots.write(3, [])
    store.files.open(store.path("x.snapshot"), create=True).close()
    assert snapshots.offsets() == [3, 20]
    assert store.files.exists(store.path("00000000000000000020.snapshot"))
    assert snapshots.read(3) == []
    snapshots.remove(3)
    snapshots.remove(3)
    assert snapshots.offsets() == [20]


def test_many_producers_are_written_in_pieces() -> None:
    data = pack_entries(make_producer(7)) * 20_000
    pieces = list(encode_pieces(data))
    assert max(map(len, pieces)) < 1 << 20
    assert len(decode_snapshot(b"".join(pieces))) == len(data)
