"""Opening a log after a crash: torn ends, damaged files, leftovers, rebuilt files."""

from __future__ import annotations

import struct
import zlib
from random import Random
from typing import Any

import pytest

from kafkacompat.storage.log.log import OffsetPosition
from kafkacompat.storage.segment.sound_batches import LegacyFormatError
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.record_batch import HEADER_SIZE, assemble_batch, build_batch, read_header
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.power_failures import Survivors
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    fill_log,
    list_offsets,
    make_batch,
    name_file,
    read_contents,
    read_log,
    reopen_log,
    rewrite_file,
    roll_log,
    stored_headers,
)

PRODUCED: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}


LAST = make_batch(3, size_bytes=20, codec=Codec.GZIP, base_sequence=2, **PRODUCED)


@pytest.mark.parametrize("cut", range(len(LAST)))
def test_a_tail_torn_at_any_byte_is_cut(memory: Store, cut: int) -> None:
    files = memory.files
    assert isinstance(files, MemoryFiles)
    log = create_log(memory, index_interval_bytes=0)
    append_batch(log, make_batch(base_sequence=0, **PRODUCED))
    append_batch(log, make_batch(base_sequence=1, **PRODUCED))
    append_batch(log, LAST)
    files.crash(lose_unsynced=False, tear_last_write=cut)
    again = reopen_log(memory, index_interval_bytes=0)
    assert again.state.truncated_bytes == cut
    assert list_offsets(again) == [0, 1]
    retried = append_batch(again, LAST)
    assert (retried.base_offset, retried.duplicate) == (2, False)
    again.close()


@pytest.mark.parametrize("position", range(8, len(LAST), 3))
def test_a_damaged_byte_cuts_the_log_before_its_batch(memory: Store, position: int) -> None:
    """The CRC does not cover the base offset: a larger one looks like a gap after a compaction."""
    log = create_log(memory)
    fill_log(log, 2)
    append_batch(log, LAST)
    append_batch(log, make_batch())
    start = len(make_batch()) * 2
    log.release()

    def flip(data: bytes) -> bytes:
        damaged = bytearray(data)
        damaged[start + position] ^= 0x40
        return bytes(damaged)

    rewrite_file(memory, name_file(0, ".log"), flip)
    again = reopen_log(memory)
    outside_crc = 12 <= position < 16  # the leader epoch
    assert again.log_end_offset == (6 if outside_crc else 2)
    again.close()


@pytest.mark.parametrize("zeros", [1, 12, 61, 5000])
def test_zeros_at_the_end_are_cut(store: Store, zeros: int) -> None:
    log = create_log(store)
    fill_log(log, 3)
    log.release()
    rewrite_file(store, name_file(0, ".log"), lambda data: data + bytes(zeros))
    again = reopen_log(store)
    assert (again.state.truncated_bytes, again.log_end_offset) == (zeros, 3)
    append_batch(again, make_batch())
    assert list_offsets(again) == [0, 1, 2, 3]
    again.close()


def test_a_torn_tail_after_a_clean_shutdown_is_cut_too(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 3)
    log.close()
    rewrite_file(store, name_file(0, ".log"), lambda data: data + b"garbage")
    again = reopen_log(store, clean=True)
    assert (again.state.truncated_bytes, again.log_end_offset) == (7, 3)
    again.close()


def test_a_batch_that_compaction_emptied_is_sound(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 1)
    log.release()
    emptied = read_header(make_batch(4))._replace(base_offset=1, record_count=0)
    rewrite_file(store, name_file(0, ".log"), lambda data: data + assemble_batch(emptied, b""))
    again = reopen_log(store)
    assert (again.state.truncated_bytes, again.log_end_offset) == (0, 5)
    again.close()


def test_a_garbage_length_claims_no_memory(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 1)
    log.release()
    huge = struct.pack(">qiib", 1, 3_000_000, 0, 2)
    rewrite_file(store, name_file(0, ".log"), lambda data: data + huge + bytes(3_000_000))
    again = reopen_log(store)
    assert again.log_end_offset == 1
    again.close()


def test_batches_larger_than_the_reading_window_are_sound(store: Store) -> None:
    log = create_log(store, max_message_bytes=1 << 24)
    append_batch(log, make_batch(2, size_bytes=3 << 20))
    append_batch(log, make_batch())
    append_batch(log, make_batch(2, size_bytes=(1 << 20) - 40))
    expected = list(stored_headers(log))
    log.release()
    again = reopen_log(store)
    assert again.state.truncated_bytes == 0
    assert list(stored_headers(again)) == expected
    again.close()


@pytest.mark.parametrize("base_offset", [0, 1, 7])
def test_offsets_that_go_back_are_cut(store: Store, base_offset: int) -> None:
    log = create_log(store)
    append_batch(log, make_batch(8))
    log.release()
    follower = build_batch([(NOW_MS, b"k", b"v", [])], base_offset=base_offset)
    rewrite_file(store, name_file(0, ".log"), lambda data: data + follower)
    again = reopen_log(store)
    assert (again.state.truncated_bytes, again.log_end_offset) == (len(follower), 8)
    again.close()


def test_segments_after_a_damaged_one_are_dropped(store: Store) -> None:
    log = create_log(store, segment_bytes=300)
    fill_log(log, 20)
    bases = [segment.base_offset for segment in log.segments]
    log.release()
    rewrite_file(store, name_file(bases[2], ".log"), lambda data: data[:-1])
    again = reopen_log(store, segment_bytes=300)
    assert again.log_end_offset == bases[3] - 1
    assert [segment.base_offset for segment in again.segments] == bases[:3]
    assert list_offsets(again) == list(range(bases[3] - 1))
    assert all(not name.startswith(f"{bases[4]:020d}") for name in store.files.list(store.path("t-0")))
    again.close()


def test_segments_before_the_recovery_point_are_not_read(store: Store) -> None:
    log = create_log(store, segment_bytes=300)
    fill_log(log, 20)
    point = log.segments[3].base_offset
    log.release()
    rewrite_file(store, name_file(0, ".log"), lambda data: data[:-1] + b"\xff")
    again = reopen_log(store, recovery_point=point, segment_bytes=300)
    assert again.state.truncated_bytes == 0
    assert again.log_end_offset == 20
    assert again.recovery_point == point
    again.close()


def test_recovery_twice_is_recovery_once(store: Store) -> None:
    log = create_log(store, segment_bytes=400, index_interval_bytes=0)
    for index in range(30):
        append_batch(log, make_batch(base_sequence=index, **PRODUCED), leader_epoch=index // 7)
    log.release()
    rewrite_file(store, name_file(log.segments.active.base_offset, ".log"), lambda data: data[:-5])
    reopen_log(store, segment_bytes=400, index_interval_bytes=0).release()
    once = read_contents(store)
    again = reopen_log(store, segment_bytes=400, index_interval_bytes=0)
    assert again.state.truncated_bytes == 0
    again.release()
    assert read_contents(store) == once


def test_leader_epochs_come_from_the_batches(store: Store) -> None:
    log = create_log(store)
    for index in range(6):
        append_batch(log, make_batch(), leader_epoch=index // 2)
    log.release()
    again = reopen_log(store)
    assert again.leader_epochs.entries == [(0, 0), (1, 2), (2, 4)]
    again.close()


def test_epochs_after_the_recovered_end_are_dropped(store: Store) -> None:
    log = create_log(store)
    append_batch(log, make_batch(), leader_epoch=1)
    append_batch(log, make_batch(), leader_epoch=2)
    log.flush()
    log.release()
    rewrite_file(store, name_file(0, ".log"), lambda data: data[:-1])
    again = reopen_log(store)
    assert again.leader_epochs.entries == [(1, 0)]
    again.close()


def test_a_log_that_ends_before_its_start_begins_empty(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 5)
    log.release()
    again = reopen_log(store, log_start_offset=9)
    assert (again.log_start_offset, again.log_end_offset) == (9, 9)
    assert append_batch(again, make_batch()).base_offset == 9
    again.close()
    assert not store.files.exists(store.path(name_file(0, ".log")))


@pytest.mark.parametrize("clean", [False, True])
def test_a_log_that_ends_before_its_start_keeps_its_files_aside(
    store: Store, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log = create_log(store, segment_bytes=300)
    fill_log(log, 20)
    log.close()
    before = {name: data for name, data in read_contents(store).items() if name.endswith(".log")}
    again = reopen_log(store, clean=clean, log_start_offset=29)
    assert (again.log_start_offset, again.log_end_offset, len(again.segments)) == (29, 29, 1)
    assert append_batch(again, make_batch()).base_offset == 29
    (said,) = caplog.messages
    assert "ends at offset 20, before 29," in said
    kept = {name: data for name, data in read_contents(store).items() if name.endswith(".log.removed")}
    assert len(kept) > 2
    assert kept == {name + ".removed": data for name, data in before.items()}
    again.close()
    reopened = reopen_log(store, log_start_offset=29)
    assert list_offsets(reopened) == [29]
    reopened.close()


def test_files_that_were_kept_aside_earlier_stay(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 2)
    log.close()
    (first,) = [data for name, data in read_contents(store).items() if name.endswith(".log")]
    rewrite_file(store, name_file(0, ".log.removed"), lambda _: b"earlier")
    reopen_log(store, clean=True, log_start_offset=9).close()
    kept = read_contents(store)
    assert (kept[f"{0:020d}.log.removed"], kept[f"{0:020d}.log.1.removed"]) == (b"earlier", first)


def test_an_empty_log_that_ends_before_its_start_leaves_nothing(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    create_log(store).release()
    again = reopen_log(store, log_start_offset=9)
    assert (again.log_start_offset, again.log_end_offset, caplog.messages) == (9, 9, [])
    assert not any(name.endswith(".removed") for name in read_contents(store))
    again.close()


def test_the_log_start_is_kept(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 5)
    log.close()
    again = reopen_log(store, clean=True, log_start_offset=3)
    assert again.log_start_offset == 3
    again.close()


def test_a_folder_without_segments_gets_one(store: Store) -> None:
    log = create_log(store)
    log.release()
    store.files.remove(store.path(name_file(0, ".log")))
    again = reopen_log(store, log_start_offset=4)
    assert (again.log_start_offset, again.log_end_offset) == (4, 4)
    append_batch(again, make_batch())
    assert list_offsets(again) == [4]
    again.close()


def legacy_message(magic: int, value: bytes) -> bytes:
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", NOW_MS) if magic else b"")
    body += struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_refused_and_not_cut(store: Store, magic: int) -> None:
    create_log(store).release()
    data = legacy_message(magic, b"x" * 100) * 3
    rewrite_file(store, name_file(0, ".log"), lambda _: data)
    with pytest.raises(LegacyFormatError, match=f"format version {magic}"):
        reopen_log(store)
    assert store.files.read(store.path(name_file(0, ".log"))) == data


def test_bytes_that_only_look_like_an_older_format_are_cut(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 1)
    log.release()
    damaged = bytearray(legacy_message(0, b"x" * 100))
    damaged[-1] ^= 1
    rewrite_file(store, name_file(0, ".log"), lambda data: data + bytes(damaged))
    again = reopen_log(store)
    assert again.log_end_offset == 1
    again.close()


def test_a_hole_left_by_compaction_is_read_over(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 1)
    log.release()
    later = assemble_batch(read_header(make_batch())._replace(base_offset=50), make_batch()[HEADER_SIZE:])
    rewrite_file(store, name_file(0, ".log"), lambda data: data + later)
    again = reopen_log(store)
    assert again.log_end_offset == 51
    assert read_log(again, 1)[:8] == struct.pack(">q", 50)
    again.close()


def test_a_hole_at_the_end_of_a_segment_leads_to_the_next(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 5)
    log.release()
    later = assemble_batch(read_header(make_batch())._replace(base_offset=50), make_batch()[HEADER_SIZE:])
    rewrite_file(store, name_file(40, ".log"), lambda _: later)
    again = reopen_log(store, recovery_point=51)
    assert read_log(again, 4)[:8] == struct.pack(">q", 4)
    for offset in (5, 39, 40, 50):
        assert read_log(again, offset)[:8] == struct.pack(">q", 50)
    again.close()
    clean = reopen_log(store, clean=True)
    assert read_log(clean, 7)[:8] == struct.pack(">q", 50)
    assert read_log(clean, 7, upper=OffsetPosition(40, 0, len(make_batch()) * 5)) == b""
    clean.close()


@pytest.mark.parametrize("survivors", [("all", "none"), ("all", "first"), ("any", "all")])
def test_a_log_ends_where_an_unsynced_segment_lost_its_end_though_later_ones_did_not(
    memory: Store, survivors: tuple[str, str]
) -> None:
    """A power failure may keep the second of two files and lose the end of the first, even right after a batch."""
    assert isinstance(memory.files, MemoryFiles)
    log = create_log(memory)
    fill_log(log, 5)
    log.flush()
    for end in (5, 8, 11):
        log.maintenance.roll(log.maintenance.prepare_segment(end))
        fill_log(log, 3)
    for seed in range(50):
        left = Store(memory.files.after(Survivors(*survivors, Random(seed))), memory.root)
        again = reopen_log(left, recovery_point=5)
        assert list_offsets(again) == list(range(again.log_end_offset))
        assert append_batch(again, make_batch()).base_offset == again.log_end_offset - 1 >= 5
        again.close()


@pytest.mark.parametrize(("cleaner_offset", "end"), [(0, 5), (40, 51)])
def test_a_gap_after_the_recovery_point_comes_from_compaction_or_a_loss(
    memory: Store, cleaner_offset: int, end: int
) -> None:
    log = create_log(memory)
    fill_log(log, 5)
    log.release()
    later = assemble_batch(read_header(make_batch())._replace(base_offset=50), make_batch()[HEADER_SIZE:])
    rewrite_file(memory, name_file(40, ".log"), lambda _: later)
    again = reopen_log(memory, recovery_point=5, cleaner_offset=cleaner_offset)
    assert (again.log_end_offset, again.cleaner_offset) == (end, cleaner_offset)
    again.close()


def test_epochs_that_the_file_forgot_with_records_that_are_still_there_are_found_again(memory: Store) -> None:
    """A crash interrupts a deletion of records after the epochs were written."""
    assert isinstance(memory.files, MemoryFiles)
    log = create_log(memory)
    for epoch in (0, 0, 3, 3, 3, 4):
        append_batch(log, make_batch(), leader_epoch=epoch)
        if epoch == 3:
            roll_log(log)
    log.trimmer.advance_log_start_offset(4)
    log.flush()
    assert log.leader_epochs.entries == [(3, 4), (4, 5)]
    memory.files.crash()
    again = reopen_log(memory, recovery_point=6, log_start_offset=1)
    assert again.leader_epochs.entries == [(0, 1), (3, 2), (4, 5)]
    again.close()


def test_names_that_a_killed_process_made_are_on_the_disk_before_anything_is_acknowledged(memory: Store) -> None:
    """A kill between creating a segment and syncing its folder, then, after a flush, a power failure."""
    files = memory.files
    assert isinstance(files, MemoryFiles)
    log = create_log(memory)
    fill_log(log, 2)
    log.flush()
    log.maintenance.roll(log.maintenance.prepare_segment(2))
    fill_log(log, 1)
    files.crash(lose_unsynced=False)
    log = reopen_log(memory, recovery_point=2)
    fill_log(log, 1)
    assert log.flush() == 4
    files.crash()
    log = reopen_log(memory, recovery_point=4)
    assert list_offsets(log) == [0, 1, 2, 3]
    log.close()
