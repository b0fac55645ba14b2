"""Appending fetched batches: a follower's log equals its leader's, and hostile batches are rejected."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kafkacompat.storage.log.log import Log, RollNeededError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import BatchHeader, assemble_batch, read_header, split_batches
from tests.fakes.memory_files import MemoryFiles
from tests.storage.compaction.support import COMPACTED, append_pairs, roll_and_compact
from tests.storage.conftest import memory_store
from tests.storage.log.followers import (
    NEWEST_EPOCH,
    Leader,
    append_fetched,
    configs,
    copy_all,
    histories,
    list_indexes,
    list_knowledge,
    piece_sizes,
    rolled_histories,
    stored_bytes,
)
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    fill_log,
    list_offsets,
    make_batch,
    read_log,
    reopen_log,
)

property_test = settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def make_fetched(count: int = 1, *, base_offset: int = 0, leader_epoch: int = 0, **kw: Any) -> bytes:
    """A batch as a leader stores it."""
    return make_batch(count, base_offset=base_offset, leader_epoch=leader_epoch, **kw)


# --- the same log ---


@property_test
@given(histories, piece_sizes, configs)
def test_a_follower_has_the_log_of_its_leader(history: list[Any], sizes: list[int], config: dict[str, Any]) -> None:
    leader, follower = Leader(config), create_log(memory_store(), **config)
    leader.live(history)
    copy_all(leader.log, follower, sizes)
    assert list_knowledge(follower) == list_knowledge(leader.log)
    assert follower.producer_state.open.first == leader.log.producer_state.open.first
    assert list_indexes(follower) == list_indexes(leader.log)
    assert follower.end_position() == leader.log.end_position()


@property_test
@given(rolled_histories, piece_sizes, configs)
def test_recovery_rebuilds_the_state_of_a_follower(
    history: list[Any], sizes: list[int], config: dict[str, Any]
) -> None:
    """The leader's segments may be others: each log rolls for reasons of its own."""
    leader, store = Leader(config), memory_store()
    leader.live(history)
    follower = create_log(store, **config)
    copy_all(leader.log, follower, sizes)
    known = list_knowledge(follower)
    assert known == list_knowledge(leader.log)
    files = store.files
    assert isinstance(files, MemoryFiles)
    follower.maintenance.make_durable()
    files.crash(lose_unsynced=False)
    for name in files.list(store.path("t-0")):
        if name.endswith(".snapshot"):
            files.remove(store.path("t-0", name))
    again = reopen_log(store, high_watermark=0, **config)
    assert list_knowledge(again) == known


@property_test
@given(histories, st.integers(0, 200), piece_sizes, st.sampled_from([700, 2000]))
def test_a_truncated_follower_follows_again(
    history: list[Any], place: int, sizes: list[int], segment_bytes: int
) -> None:
    config = {"segment_bytes": segment_bytes, "index_interval_bytes": 100}
    leader, store = Leader(config), memory_store()
    leader.live(history)
    follower = create_log(store, **config)
    copy_all(leader.log, follower, sizes)
    follower.trimmer.truncate_to(min(place, follower.log_end_offset), high_watermark=0)
    copy_all(leader.log, follower, sizes)
    known = list_knowledge(follower)
    assert known["producers"].keys() == list_knowledge(leader.log)["producers"].keys()
    leaders = list_knowledge(leader.log)
    for name in ("end", "bytes", "open", "epochs", "aborted"):
        assert known[name] == leaders[name], name
    follower.close()
    again = reopen_log(store, clean=True, **config)
    assert stored_bytes(again) == leaders["bytes"]
    assert list_offsets(again) == list_offsets(leader.log)


@property_test
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from([-1, 1, 2])), min_size=5, max_size=60),
    piece_sizes,
)
def test_gaps_that_compaction_left_are_copied(pairs: list[tuple[int, int, int]], sizes: list[int]) -> None:
    leader_store, store = memory_store(), memory_store()
    config = {**COMPACTED, "segment_bytes": 500}
    leader = create_log(leader_store, **config)
    sequences = {1: 0, 2: 0}
    for key, value, producer_id in pairs:
        producer: dict[str, Any] = {}
        if producer_id >= 0:
            producer = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequences[producer_id]}
            sequences[producer_id] += 1
        append_pairs(leader, (str(key), str(value)), **producer)
    roll_and_compact(leader_store, leader)
    fill_log(leader, 2)
    follower = create_log(store, **config)
    copy_all(leader, follower, sizes)
    assert stored_bytes(follower) == stored_bytes(leader)
    known = list_knowledge(follower)
    assert known["producers"].keys() <= leader.producer_state.producers.packed.keys()
    follower.flush()
    assert isinstance(store.files, MemoryFiles)
    store.files.crash()
    assert list_knowledge(reopen_log(store, **config))["bytes"] == known["bytes"]


# --- one append ---


def test_many_batches_are_one_write(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[str] = []
    log = create_log(memory)
    monkeypatch.setattr(memory.files, "before_change", writes.append)
    data = b"".join(make_fetched(2, base_offset=2 * number, timestamp=NOW_MS - number) for number in range(50))
    result = log.append_fetched(data + data[:30], leader_epoch=0, now_ms=NOW_MS)
    assert writes == ["append"]
    assert result[:5] == (0, 99, 50, len(data), NOW_MS + 1)
    assert result.end == log.end_position()
    assert read_log(log, 0) == data


def test_batches_that_fit_are_appended_before_a_roll(memory: Store) -> None:
    size = len(make_fetched())
    log = create_log(memory, segment_bytes=3 * size)
    data = b"".join(make_fetched(base_offset=number) for number in range(5))
    part = log.append_fetched(data, leader_epoch=0, now_ms=NOW_MS)
    assert (part.last_offset, part.batch_count, part.size_bytes) == (2, 3, 3 * size)
    with pytest.raises(RollNeededError):
        log.append_fetched(data[part.size_bytes :], leader_epoch=0, now_ms=NOW_MS)
    assert log.log_end_offset == 3
    assert append_fetched(log, data[part.size_bytes :])[:4] == (3, 4, 2, 2 * size)
    assert [segment.base_offset for segment in log.segments] == [0, 3]


def test_a_batch_larger_than_a_segment_gets_its_own(memory: Store) -> None:
    """The leader's segments may have been larger when it was produced."""
    log = create_log(memory, segment_bytes=300)
    data = b"".join(make_fetched(base_offset=number, size_bytes=1000 * (number == 1)) for number in range(3))
    assert append_fetched(log, data).batch_count == 3
    assert [segment.base_offset for segment in log.segments] == [0, 1, 2]


@pytest.mark.parametrize("cut", [0, 1, 16, 17, 60, 61])
def test_without_a_whole_batch_nothing_changes(memory: Store, cut: int) -> None:
    log = create_log(memory)
    append_fetched(log, make_fetched(3))
    result = log.append_fetched(make_fetched(base_offset=3)[:cut], leader_epoch=0, now_ms=NOW_MS)
    assert result == (3, 2, 0, 0, -1, log.end_position())
    assert list_offsets(log) == [0]


def test_an_empty_log_begins_where_the_leaders_does(memory: Store) -> None:
    log = create_log(memory)
    fill_log(log, 3)
    log.trimmer.start_over_at(500)
    assert append_fetched(log, make_fetched(2, base_offset=510, leader_epoch=4)).first_offset == 510
    assert (log.log_start_offset, log.log_end_offset, list_offsets(log)) == (500, 512, [510])
    assert log.leader_epochs.entries == [(4, 510)]


def test_a_full_disk_fails_an_append_and_the_log_continues(memory: Store) -> None:
    assert isinstance(memory.files, MemoryFiles)
    log = create_log(memory, index_interval_bytes=0)
    append_fetched(log, make_fetched(2))
    before = list_knowledge(log), list_indexes(log)
    data = make_fetched(base_offset=2, producer_id=4, producer_epoch=0, base_sequence=0) + make_fetched(base_offset=3)
    memory.files.fail_on("append", errno.ENOSPC, after_bytes=100)
    with pytest.raises(KafkaError) as refused:
        append_fetched(log, data)
    assert (refused.value.code, log.offline) == (ErrorCode.KAFKA_STORAGE_ERROR, False)
    assert (list_knowledge(log), list_indexes(log)) == before
    assert append_fetched(log, data).batch_count == 2


def test_a_write_that_cannot_be_undone_takes_the_log_offline(memory: Store) -> None:
    assert isinstance(memory.files, MemoryFiles)
    log = create_log(memory)
    memory.files.fail_on("append", errno.ENOSPC, after_bytes=30)
    memory.files.fail_on("truncate", errno.EIO)
    for _ in range(2):
        with pytest.raises(KafkaError):
            append_fetched(log, make_fetched())
    assert log.offline


# --- rejected batches ---


def make_changed(**fields: Any) -> bytes:
    """A batch at offset 3 whose header is changed, with a correct checksum."""
    data = make_fetched(2, base_offset=3, leader_epoch=5)
    return assemble_batch(read_header(data)._replace(**fields), data[61:])


def make_torn() -> bytes:
    data = bytearray(make_fetched(2, base_offset=3, leader_epoch=5))
    data[-1] ^= 1
    return bytes(data)


def with_length(length: int) -> bytes:
    data = bytearray(make_fetched(2, base_offset=3, leader_epoch=5))
    data[8:12] = length.to_bytes(4, "big", signed=True)
    return bytes(data)


def with_magic(magic: int) -> bytes:
    data = bytearray(make_fetched(2, base_offset=3, leader_epoch=5))
    data[16] = magic
    return bytes(data)


def make_control(key: bytes | None = b"\0\0\0\0", value: bytes = bytes(6), **kw: Any) -> bytes:
    from kafkacompat.wire.record_batch import build_batch

    producer = {"producer_id": 4, "producer_epoch": 0, "control": True, "transactional": True, **kw}
    return build_batch([(NOW_MS, key, value, [])], base_offset=3, leader_epoch=5, **producer)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (make_torn(), ErrorCode.CORRUPT_MESSAGE),
        (with_length(48), ErrorCode.CORRUPT_MESSAGE),
        (with_length(-1), ErrorCode.CORRUPT_MESSAGE),
        (with_magic(0), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (with_magic(1), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (with_magic(3), ErrorCode.CORRUPT_MESSAGE),
        (make_changed(base_offset=2), ErrorCode.INVALID_RECORD),
        (make_changed(base_offset=0, last_offset_delta=50), ErrorCode.INVALID_RECORD),
        (make_changed(base_offset=-1), ErrorCode.INVALID_RECORD),
        (make_changed(last_offset_delta=-1), ErrorCode.INVALID_RECORD),
        (make_changed(base_offset=2**63 - 2), ErrorCode.INVALID_RECORD),
        (make_changed(base_offset=2**40), ErrorCode.INVALID_RECORD),
        (make_changed(partition_leader_epoch=4), ErrorCode.INVALID_RECORD),
        (make_changed(partition_leader_epoch=-1), ErrorCode.INVALID_RECORD),
        (make_changed(partition_leader_epoch=NEWEST_EPOCH + 1), ErrorCode.INVALID_RECORD),
        (
            make_fetched(2, base_offset=3, leader_epoch=5) + make_fetched(base_offset=4, leader_epoch=5),
            ErrorCode.INVALID_RECORD,
        ),
        (
            make_fetched(2, base_offset=3, leader_epoch=6) + make_fetched(base_offset=5, leader_epoch=5),
            ErrorCode.INVALID_RECORD,
        ),
        (make_control(b"\0"), ErrorCode.CORRUPT_MESSAGE),
        (make_control(None), ErrorCode.CORRUPT_MESSAGE),
        (make_control(b"\0\0\0\2"), ErrorCode.CORRUPT_MESSAGE),
        (make_control(value=b"\0"), ErrorCode.CORRUPT_MESSAGE),
        (make_control(codec=1), ErrorCode.CORRUPT_MESSAGE),
        (make_control()[:61] + make_control()[61:], None),
    ],
)
def test_a_batch_that_cannot_follow_is_rejected_with_all_others(
    memory: Store, data: bytes, code: ErrorCode | None
) -> None:
    log = create_log(memory)
    append_fetched(log, make_fetched(3, leader_epoch=5))
    if code is None:
        assert append_fetched(log, data).batch_count == 1
        return
    before = list_knowledge(log), list_indexes(log)
    sound = make_fetched(base_offset=3, leader_epoch=5)
    for records in (data, sound + _move_offset(data, 1) if code is ErrorCode.CORRUPT_MESSAGE else data):
        with pytest.raises(KafkaError) as refused:
            log.append_fetched(records, leader_epoch=NEWEST_EPOCH, now_ms=NOW_MS)
        assert refused.value.code is code
        assert (list_knowledge(log), list_indexes(log)) == before
    assert not log.offline


def _move_offset(data: bytes, distance: int) -> bytes:
    return (int.from_bytes(data[:8], "big") + distance).to_bytes(8, "big") + data[8:]


@st.composite
def hostile_records(draw: st.DrawFn) -> bytes:
    """Sound batches with some of their bytes changed, checksums corrected at times; or anything."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.binary(max_size=300))
    kinds = [
        make_fetched(2, base_offset=3, leader_epoch=5),
        make_fetched(1, base_offset=5, leader_epoch=6, producer_id=7, producer_epoch=0, base_sequence=0),
        make_fetched(
            1, base_offset=6, leader_epoch=6, producer_id=8, producer_epoch=0, base_sequence=0, transactional=True
        ),
        _move_offset(make_control(producer_id=8), 4),
    ]
    batches = []
    for data in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4)):
        changing = bytearray(data)
        for position, value in draw(
            st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=3)
        ):
            changing[position] = value
        if draw(st.booleans()):
            header: BatchHeader = read_header(changing)
            changing = bytearray(assemble_batch(header, bytes(changing[61:])))
        batches.append(bytes(changing))
    return b"".join(batches)


# Two records of a leader whose attributes say, under a valid checksum, that they are a compressed marker of no producer.
COMPRESSED_CONTROL_BATCH = bytes.fromhex(
    "00000000000000030000005500000005"
    "02b5324e490021"
    "00000001"
    "0000018bcfe56800"
    "0000018bcfe56801"
    "ffffffffffffffff"
    "ffff"
    "ffffffff"
    "00000002"
    "22000000026b1476767676767676767676"
    "00"
    "22000202026b1476767676767676767676"
    "00"
)


@settings(max_examples=400, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.lists(hostile_records(), max_size=4))
@example([COMPRESSED_CONTROL_BATCH])
def test_hostile_bytes_raise_nothing_else_and_leave_a_sound_log(pieces: list[bytes]) -> None:
    store = memory_store()
    log = create_log(store, segment_bytes=400)
    append_fetched(log, make_fetched(3, leader_epoch=5))
    for data in pieces:
        before = list_knowledge(log), list_indexes(log)
        try:
            append_fetched(log, data)
        except KafkaError:
            # A roll may have come between two parts; nothing is rejected after the first one.
            assert (list_knowledge(log), list_indexes(log)) == before
        assert not log.offline
    known = list_knowledge(log)
    assert len(list(split_batches(known["bytes"]))) >= 1
    log.flush()
    log.release()
    assert list_knowledge(reopen_log(store, segment_bytes=400))["bytes"] == known["bytes"]


def test_a_closed_log_takes_nothing(memory: Store) -> None:
    log = create_log(memory)
    log.close()
    with pytest.raises(KafkaError) as refused:
        append_fetched(log, make_fetched())
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_follower_that_leads_goes_on_where_the_leader_stopped(memory: Store) -> None:
    """Its producers and transactions are as they were."""
    log: Log = create_log(memory)
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    append_fetched(log, make_fetched(2, leader_epoch=1, base_sequence=0, **producer))
    repeated = append_batch(log, make_batch(2, base_sequence=0, **producer), leader_epoch=2)
    assert (repeated.base_offset, repeated.duplicate) == (0, True)
    assert append_batch(log, make_batch(1, base_sequence=2, **producer), leader_epoch=2).base_offset == 2
    with pytest.raises(KafkaError) as refused:
        append_batch(log, make_batch(1, base_sequence=9, **producer), leader_epoch=2)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.leader_epochs.entries == [(1, 0), (2, 2)]
