"""Conversion of logs with messages of formats 0 and 1 at their opening: completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.log.leftovers import clean_folder
from kafkacompat.storage.log.legacy_segments import convert_legacy
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.sound_batches import LegacyFormatError
from kafkacompat.wire.batch_header import LOG_APPEND_TIME
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.message_set import make_entry_writer, wrap_messages
from kafkacompat.wire.primitives import ZERO_UUID
from kafkacompat.wire.record_batch import Record, build_batch, read_header, read_records, split_batches
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import NOW_MS

FOLDER = "/data/t-0"
GZIP, SNAPPY = int(Codec.GZIP), int(Codec.SNAPPY)
NO_LIMIT = 1 << 30


def make_messages(magic: int, offsets: Sequence[int], attributes: int = 0) -> bytes:
    write = make_entry_writer(magic, attributes)
    return b"".join(write(offset, NOW_MS + offset, b"k%d" % offset, b"v%d" % offset) for offset in offsets)


def make_wrapper(magic: int, offsets: Sequence[int], codec: int, time: int = 0) -> bytes:
    """A compressed set as a broker stored it: in format 1, offsets count from the first message that it once had."""
    inner = [offset - offsets[0] if magic else offset for offset in offsets]
    write = make_entry_writer(magic, 0)
    messages = b"".join(
        write(inner_offset, NOW_MS + offset, b"k%d" % offset, b"v%d" % offset)
        for inner_offset, offset in zip(inner, offsets, strict=True)
    )
    return wrap_messages(magic, codec | time, offsets[-1], NOW_MS + offsets[-1], messages)


def folder_with(*segments: tuple[int, bytes]) -> MemoryFiles:
    return fill_folder(MemoryFiles(), *segments)


def fill_folder(files: MemoryFiles, *segments: tuple[int, bytes]) -> MemoryFiles:
    files.make_directory(FOLDER)
    for base, data in segments:
        file = files.open(f"{FOLDER}/{base:020d}.log", create=True)
        file.append((data,), len(data))
        file.sync()
        file.close()
        # An index that does not fit the converted segment.
        files.open(f"{FOLDER}/{base:020d}.index", create=True).close()
    for path in ("/", "/data", FOLDER):
        files.sync_directory(path)
    return files


def convert_folder(files: MemoryFiles, *, may_be_torn: bool = False) -> None:
    convert_legacy(files, FOLDER, NO_LIMIT, may_be_torn=may_be_torn)


def read_segment(files: MemoryFiles, base: int = 0) -> bytes:
    return files.read(f"{FOLDER}/{base:020d}.log")


def list_records(files: MemoryFiles) -> list[Record]:
    names = [name for name in files.list(FOLDER) if name.endswith(".log")]
    segments = (split_batches(files.read(os.path.join(FOLDER, name))) for name in names)
    return [record for batches in segments for batch in batches for record in read_records(batch)]


def test_damage_before_sound_messages_is_no_torn_end() -> None:
    damaged = bytearray(make_messages(1, [0, 1, 2]))
    damaged[len(damaged) // 2] ^= 0xFF
    files = folder_with((0, bytes(damaged)))
    with pytest.raises(LegacyFormatError, match="is damaged"):
        convert_folder(files, may_be_torn=True)
    assert read_segment(files) == damaged


def test_an_empty_first_segment_hides_no_others() -> None:
    """Kafka's compaction before 1.1 left such sets."""
    files = folder_with((0, b""), (5, make_messages(1, [5, 6])), (7, build_batch([(0, b"k", b"v", ())], base_offset=7)))
    convert_folder(files)
    assert [record.offset for record in list_records(files)] == [5, 6, 7]


def test_offsets_times_keys_and_values_stay() -> None:
    files = folder_with(
        (0, make_messages(0, [0, 1]) + make_wrapper(0, [2, 5, 6], GZIP) + make_messages(1, [7, 9])),
        (10, make_wrapper(1, [10, 11, 14], SNAPPY) + make_messages(1, [15])),
    )
    convert_folder(files)
    offsets = [0, 1, 2, 5, 6, 7, 9, 10, 11, 14, 15]
    times = [-1 if offset < 7 else NOW_MS + offset for offset in offsets]
    expected = [
        Record(offset, time, b"k%d" % offset, b"v%d" % offset, []) for offset, time in zip(offsets, times, strict=True)
    ]
    assert list_records(files) == expected
    headers = [read_header(batch) for base in (0, 10) for batch in split_batches(read_segment(files, base))]
    assert [header.codec for header in headers] == [0, GZIP, 0, SNAPPY, 0]
    assert {header.partition_leader_epoch for header in headers} == {-1}
    assert files.list(FOLDER) == [f"{0:020d}.log", f"{10:020d}.log"]


def test_times_of_a_broker_stay_its_own() -> None:
    files = folder_with((0, make_messages(1, [0, 1], LOG_APPEND_TIME) + make_wrapper(1, [2, 3], GZIP, LOG_APPEND_TIME)))
    convert_folder(files)
    assert all(read_header(batch).is_log_append_time for batch in split_batches(read_segment(files)))
    assert [record.timestamp - NOW_MS for record in list_records(files)] == [0, 1, 3, 3]


def test_many_messages_become_batches_of_a_moderate_size() -> None:
    files = folder_with((0, make_messages(1, range(1000))))
    convert_folder(files)
    assert len(list_records(files)) == 1000
    assert {read_header(batch).record_count for batch in split_batches(read_segment(files))} == {100}


def test_batches_after_old_messages_stay_unchanged() -> None:
    batch = build_batch([(NOW_MS, b"k", b"v", [("h", b"x")])], base_offset=2, producer_id=7)
    files = folder_with((0, make_messages(1, [0, 1]) + batch), (3, batch))
    convert_folder(files)
    assert read_segment(files).endswith(batch)
    assert read_segment(files, 3) == batch
    assert [record.offset for record in list_records(files)] == [0, 1, 2, 2]


def test_segments_of_todays_format_are_not_touched() -> None:
    files = folder_with((0, build_batch([(NOW_MS, b"k", b"v", [])])), (1, b""))
    before = files.list(FOLDER)
    convert_folder(files)
    assert files.list(FOLDER) == before


def test_a_torn_end_is_left_out_after_a_crash_only() -> None:
    torn = make_messages(1, [0, 1, 2])[:-1]
    files = folder_with((0, torn))
    with pytest.raises(LegacyFormatError, match=f"at byte {len(make_messages(1, [0, 1]))} is damaged"):
        convert_folder(files)
    assert read_segment(files) == torn
    convert_folder(files, may_be_torn=True)
    assert [record.offset for record in list_records(files)] == [0, 1]


@pytest.mark.parametrize("may_be_torn", [False, True])
def test_damage_before_the_end_rejects_the_log_and_leaves_its_file(may_be_torn: bool) -> None:
    damaged = bytearray(make_messages(1, [0, 1]))
    damaged[-1] ^= 1
    unpackable = make_entry_writer(1, GZIP)(0, 0, None, b"no gzip")
    for bad in (bytes(damaged), unpackable):
        files = folder_with((0, bad), (2, make_messages(1, [2])))
        with pytest.raises(LegacyFormatError, match="the file stays unchanged"):
            convert_folder(files, may_be_torn=may_be_torn)
        assert read_segment(files) == bad


def test_a_length_that_is_none_claims_no_memory() -> None:
    files = folder_with((0, make_messages(1, [0]) + b"\0" * 8 + b"\x7f\xff\xff\xff" + b"\0" * 100))
    convert_folder(files, may_be_torn=True)
    assert [record.offset for record in list_records(files)] == [0]


class CrashError(Exception):
    """The power failed."""


class FailingFiles(MemoryFiles):
    """Counts changes of names and contents, and lets the power fail at change number `fatal`."""

    fatal = 0
    count = 0

    def _step(self) -> None:
        self.count += 1
        if self.count == self.fatal:
            raise CrashError

    def open(self, path: str, *, create: bool = False) -> Any:
        if create:
            self._step()
        return super().open(path, create=create)

    def rename(self, old: str, new: str) -> None:
        self._step()
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)

    def sync_directory(self, path: str) -> None:
        self._step()
        super().sync_directory(path)


@pytest.mark.parametrize("lose_unsynced", [False, True])
def test_a_crash_at_any_step_loses_no_message(lose_unsynced: bool) -> None:
    steps = 0
    while True:
        files = FailingFiles()
        fill_folder(files, (0, make_messages(1, range(5))), (5, make_messages(0, range(5, 9))))
        files.count, files.fatal = 0, steps + 1
        try:
            convert_folder(files)
            break
        except CrashError:
            steps += 1
        files.fatal = 0
        files.crash(lose_unsynced=lose_unsynced)
        convert_folder(files, may_be_torn=True)
        # The next step of opening the log.
        clean_folder(files, FOLDER)
        assert [record.offset for record in list_records(files)] == list(range(9)), steps
    assert steps > 10


def test_a_log_of_an_old_format_opens_and_takes_batches() -> None:
    files = folder_with((0, make_messages(0, [0, 1])), (2, make_wrapper(1, [2, 3], GZIP)))
    directory = LogDirectory.open(files, "/data", node_id=1, cluster_id="C", new_directory_id=bytes(range(16)))
    log = directory.open_log("t", 0, ZERO_UUID, LogConfig(), NOW_MS)
    result = log.append(build_batch([(NOW_MS, b"k4", b"v4", [])]), leader_epoch=3, now_ms=NOW_MS, from_client=True)
    assert (result.base_offset, log.log_start_offset, log.log_end_offset) == (4, 0, 5)
    first_record = log.reader.offset_for_timestamp(NOW_MS + 3)
    assert first_record is not None and first_record.offset == 3
    directory.close([log])
    assert [record.value for record in list_records(files)] == [b"v%d" % offset for offset in range(5)]


def test_a_converted_segment_keeps_the_time_of_its_last_write() -> None:
    """Retention uses it in format 0, where messages have no timestamps."""
    files = folder_with((0, make_messages(0, [0])))
    files.set_modified_ms(f"{FOLDER}/{0:020d}.log", 12_345)
    files.now_ms = NOW_MS
    convert_folder(files)
    assert files.modified_ms(f"{FOLDER}/{0:020d}.log") == 12_345


def test_zeros_that_a_power_failure_left_are_no_messages() -> None:
    """Neither in place of a whole batch nor after its first sixteen bytes."""
    torn = build_batch([(NOW_MS, b"k", b"v", [])])[:16] + bytes(48)
    for data in (bytes(300), torn):
        files = folder_with((0, data), (11, data))
        convert_legacy(files, FOLDER, NO_LIMIT, may_be_torn=True)
        assert files.read(f"{FOLDER}/{0:020d}.log") == data
