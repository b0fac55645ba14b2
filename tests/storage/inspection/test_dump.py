"""Dumps of each kind of file."""

from __future__ import annotations

import pytest

from kafkacompat.storage.inspection.dump import dump_file, list_known_files
from kafkacompat.storage.inspection.rows import PROBLEM, DumpOptions, DumpRow, decode_plain_text
from kafkacompat.wire.message_set import make_entry_writer, wrap_messages
from kafkacompat.wire.record_batch import NewRecord, build_batch
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    fill_log,
    make_batch,
    name_file,
    rewrite_file,
    roll_log,
)

PLAIN = DumpOptions()
DEEP = DumpOptions(deep_iteration=True)
CONTENTS = DumpOptions(deep_iteration=True, decoder=decode_plain_text)


def dump_rows(store: Store, file_name: str, options: DumpOptions = PLAIN) -> list[DumpRow]:
    rows = dump_file(store.files, store.path(file_name), options)
    assert rows is not None
    return list(rows)


def dump_fields(store: Store, file_name: str, *names: str, options: DumpOptions = PLAIN) -> list[tuple[object, ...]]:
    return [tuple(row.fields.get(name) for name in names) for row in dump_rows(store, file_name, options)]


def put_file(store: Store, file_name: str, data: bytes) -> None:
    store.files.make_directory(store.path("t-0"))
    rewrite_file(store, file_name, lambda _: data)


def test_batches_show_their_headers(memory: Store) -> None:
    log = create_log(memory)
    append_batch(log, make_batch(3), leader_epoch=4)
    append_batch(log, make_batch(2, codec=4, producer_id=7, producer_epoch=1, base_sequence=2**31 - 1), leader_epoch=4)
    log.close()
    first, second = dump_rows(memory, name_file(0, ".log"))
    assert first.kind == "batch"
    assert dict(first.fields) == {
        "baseOffset": 0,
        "lastOffset": 2,
        "count": 3,
        "baseSequence": -1,
        "lastSequence": -1,
        "producerId": -1,
        "producerEpoch": -1,
        "partitionLeaderEpoch": 4,
        "isTransactional": False,
        "isControl": False,
        "deleteHorizonMs": None,
        "position": 0,
        "timestampType": "CreateTime",
        "timestamp": NOW_MS + 2,
        "size": 115,
        "magic": 2,
        "compresscodec": "none",
        "crc": first.fields["crc"],
        "isvalid": True,
    }
    fields = ("baseSequence", "lastSequence", "compresscodec")
    assert [second.fields[field] for field in fields] == [2**31 - 1, 0, "zstd"]


def test_records_show_with_deep_iteration_and_their_contents_when_asked_for(memory: Store) -> None:
    data = build_batch([(NOW_MS, b"k", b"\xff\x01", [("h", b"1"), ("h", None)]), (NOW_MS + 5, None, None, [])])
    put_file(memory, name_file(0, ".log"), data)
    _, first, second = dump_rows(memory, name_file(0, ".log"), DEEP)
    assert first.fields == {
        "offset": 0,
        "timestampType": "CreateTime",
        "timestamp": NOW_MS,
        "keySize": 1,
        "valueSize": 2,
        "sequence": -1,
        "headerKeys": ["h", "h"],
    }
    assert (second.fields["keySize"], second.fields["valueSize"], second.fields["timestamp"]) == (-1, -1, NOW_MS + 5)
    _, first, second = dump_rows(memory, name_file(0, ".log"), CONTENTS)
    assert (first.fields["key"], first.fields["payload"]) == ("k", "\\xff\x01")
    assert first.fields["headers"] == [("h", "1"), ("h", None)]
    assert (second.fields["key"], second.fields["payload"]) == (None, None)
    short = CONTENTS._replace(skip_record_metadata=True)
    assert dump_rows(memory, name_file(0, ".log"), short)[1].fields == {"key": "k", "payload": "\\xff\x01"}


def test_control_records_show_their_type(memory: Store) -> None:
    marker: NewRecord = (NOW_MS, b"\0\0\0\1", b"\0\0\0\0\0\7", [])
    data = build_batch([marker], producer_id=1, producer_epoch=0, transactional=True, control=True)
    put_file(memory, name_file(0, ".log"), data)
    _, record = dump_rows(memory, name_file(0, ".log"), CONTENTS)
    assert (record.fields["endTxnMarker"], record.fields["coordinatorEpoch"]) == ("COMMIT", 7)
    assert "payload" not in record.fields


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_formats_0_and_1(memory: Store, magic: int) -> None:
    write = make_entry_writer(magic, 0)
    inner = b"".join(write(index if magic else 6 + index, NOW_MS, b"k", b"x") for index in range(3))
    put_file(memory, name_file(5, ".log"), write(5, NOW_MS, b"k", b"v") + wrap_messages(magic, 2, 8, NOW_MS, inner))
    rows = dump_rows(memory, name_file(5, ".log"), CONTENTS)
    outer = [row.fields for row in rows if row.kind == "message"]
    assert [
        (message["offset"], message["magic"], message["compresscodec"], message["isvalid"]) for message in outer
    ] == [
        (5, magic, "none", True),
        (8, magic, "snappy", True),
    ]
    assert [row.fields["offset"] for row in rows if row.kind == "record"] == [5, 6, 7, 8]


def test_damage_and_later_batches_are_shown(memory: Store) -> None:
    log = create_log(memory)
    fill_log(log, 3)
    log.close()
    rewrite_file(memory, name_file(0, ".log"), lambda data: data[:110] + b"\x55" + data[111:])
    rows = dump_rows(memory, name_file(0, ".log"), DEEP)
    assert [row.fields.get("isvalid") for row in rows if row.kind == "batch"] == [True, False, True]
    (problem,) = [row.fields["what"] for row in rows if row.kind == PROBLEM]
    assert "this concerns offsets 1 to 1" in str(problem) and "bytes 79 to 157" in str(problem)


def test_max_bytes_ends_a_log_early(memory: Store) -> None:
    log = create_log(memory)
    fill_log(log, 3)
    log.close()
    assert len(dump_rows(memory, name_file(0, ".log"), DumpOptions(max_bytes=79 * 2 + 10))) == 2


def test_indexes_show_their_entries_and_contradictions(memory: Store) -> None:
    log = create_log(memory, index_interval_bytes=100)
    fill_log(log, 6)
    log.close()
    entries = [(2, 158), (4, 316)]
    assert dump_fields(memory, name_file(0, ".index"), "offset", "position") == entries
    times = [(NOW_MS + 2, 2), (NOW_MS + 4, 4), (NOW_MS + 5, 5)]
    assert dump_fields(memory, name_file(0, ".timeindex"), "timestamp", "offset") == times
    verify = DumpOptions(verify_index_only=True)
    assert (
        dump_rows(memory, name_file(0, ".index"), verify) == dump_rows(memory, name_file(0, ".timeindex"), verify) == []
    )
    for suffix, size_bytes in ((".index", 16), (".timeindex", 36)):
        whole = memory.files.read(memory.path(name_file(0, suffix)))
        assert len(whole) == size_bytes
        for position in range(size_bytes):
            flipped = bytearray(whole)
            flipped[position] ^= 1
            rewrite_file(memory, name_file(0, suffix), lambda _, flipped=flipped: bytes(flipped))  # type: ignore[misc]
            assert dump_rows(memory, name_file(0, suffix), verify), position
        rewrite_file(memory, name_file(0, suffix), lambda _, whole=whole: whole)  # type: ignore[misc]


def test_the_sanity_check_of_an_index_is_that_of_a_start(memory: Store) -> None:
    sanity = DumpOptions(index_sanity_check=True)
    put_file(memory, name_file(0, ".index"), bytes(16) + b"\0")
    put_file(memory, name_file(0, ".timeindex"), (5).to_bytes(8, "big") + bytes(4) + bytes(12))
    put_file(memory, name_file(0, ".log"), b"")
    assert [row.kind for row in dump_rows(memory, name_file(0, ".index"), sanity)] == [PROBLEM]
    assert [row.kind for row in dump_rows(memory, name_file(0, ".timeindex"), sanity)] == [PROBLEM]


def test_the_small_files(memory: Store) -> None:
    log = create_log(memory)
    append_batch(log, make_batch(2, producer_id=9, producer_epoch=1, base_sequence=0), leader_epoch=3)
    roll_log(log)
    log.close()
    assert dump_fields(memory, name_file(2, ".snapshot"), "producerId", "lastSequence", "lastOffset") == [(9, 1, 1)]
    assert dump_fields(memory, "t-0/leader-epoch-checkpoint", "epoch", "startOffset") == [(3, 0)]
    assert dump_fields(memory, "t-0/partition.metadata", "name", "value")[0] == ("version", "0")
    put_file(memory, "meta.properties", b"#\nversion=1\nnode.id=1\n")
    assert dump_fields(memory, "meta.properties", "name", "value") == [("version", "1"), ("node.id", "1")]
    put_file(memory, "cleaner-offset-checkpoint", b"0\n1\na-b 3 17\n")
    assert dump_fields(memory, "cleaner-offset-checkpoint", "topic", "partition", "offset") == [("a-b", 3, 17)]
    entry = b"\0\0" + b"".join(number.to_bytes(8, "big") for number in (5, 10, 20, 21))
    put_file(memory, name_file(0, ".txnindex"), entry)
    assert dump_fields(
        memory, name_file(0, ".txnindex"), "producerId", "firstOffset", "lastOffset", "lastStableOffset"
    ) == [(5, 10, 20, 21)]


@pytest.mark.parametrize(
    ("file_name", "data"),
    [
        (name_file(0, ".snapshot"), b"\0\1\0\0"),
        (name_file(0, ".txnindex"), bytes(33)),
        ("replication-offset-checkpoint", b"1\n0\n"),
        ("replication-offset-checkpoint", b"0\n2\nt 0 1\n"),
        ("leader-epoch-checkpoint", b"0\n1\n1\n"),
    ],
)
def test_a_dump_reports_unreadable_records(memory: Store, file_name: str, data: bytes) -> None:
    put_file(memory, file_name, data)
    assert PROBLEM in {row.kind for row in dump_rows(memory, file_name)}


def test_a_directory_is_every_file_of_a_known_kind_in_it(memory: Store) -> None:
    log = create_log(memory)
    log.close()
    put_file(memory, "meta.properties", b"version=1")
    put_file(memory, ".lock", b"")
    put_file(memory, "t-0/notes.txt", b"")
    put_file(memory, name_file(0, ".snapshot"), b"")
    put_file(memory, name_file(7, ".log.deleted"), b"")
    known_files = [path.removeprefix(memory.root + "/") for path in list_known_files(memory.files, memory.root)]
    names = [
        name_file(0, ".index"),
        name_file(0, ".log"),
        name_file(0, ".snapshot"),
        name_file(0, ".timeindex"),
        name_file(7, ".log.deleted"),
    ]
    assert known_files == ["meta.properties", *names, "t-0/partition.metadata"]
    assert dump_file(memory.files, memory.path("t-0/notes.txt"), DEEP) is None


def test_removed_files_are_dumped_too(memory: Store) -> None:
    log = create_log(memory, index_interval_bytes=100)
    fill_log(log, 6)
    log.close()
    whole, index = (
        memory.files.read(memory.path(name_file(0, ".log"))),
        memory.files.read(memory.path(name_file(0, ".index"))),
    )
    removed = [name_file(0, ".index.removed"), name_file(0, ".log.removed"), name_file(0, ".log.158.removed")]
    for file_name, data in zip(removed, (index, whole, whole[158:]), strict=True):
        put_file(memory, file_name, data)
    put_file(memory, "recovery-point-offset-checkpoint.removed", b"0\n1\nt 0 1\n")
    known_files = [path.removeprefix(memory.root + "/") for path in list_known_files(memory.files, memory.root)]
    assert {*removed, "recovery-point-offset-checkpoint.removed"} <= set(known_files)
    assert dump_fields(memory, name_file(0, ".log.158.removed"), "baseOffset", "isvalid") == [
        (2, True),
        (3, True),
        (4, True),
        (5, True),
    ]
    assert len(dump_rows(memory, name_file(0, ".log.removed"))) == 6
    # The index is compared with the log file that was removed with it.
    put_file(memory, name_file(0, ".log.removed"), b"")
    assert PROBLEM in {row.kind for row in dump_rows(memory, name_file(0, ".index.removed"))}
    memory.files.remove(memory.path(name_file(0, ".log.removed")))
    (missing,) = [row for row in dump_rows(memory, name_file(0, ".index.removed")) if row.kind == PROBLEM]
    assert "00000000000000000000.log.removed does not exist" in str(missing.fields["what"])
