"""Reading the log of Kafka's controllers, and detecting that it has grown."""

from __future__ import annotations

import pytest

from kafkacompat.storage.directory import takeover_mark
from kafkacompat.storage.directory.cluster_metadata import CLUSTER_METADATA_FOLDER, read_cluster_metadata
from kafkacompat.storage.directory.meta_properties import LogDirectoryError
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.memory_files import MemoryFiles

ROOT = "/data"


def make_batch(base_offset: int, count: int = 2, *, control: bool = False) -> bytes:
    records = [(0, None, b"%d" % (base_offset + index), ()) for index in range(count)]
    return build_batch(records, base_offset=base_offset, control=control)


def make_snapshot(count: int) -> bytes:
    """A snapshot of some records between its two control batches."""
    enclosing = [
        build_batch([(0, key, b"", ())], base_offset=offset, control=True)
        for key, offset in ((b"\0\0\0\3", 0), (b"\0\0\0\4", count + 1))
    ]
    return enclosing[0] + make_batch(1, count) + enclosing[1]


def folder_with(**files: bytes) -> MemoryFiles:
    """Base names of segments and snapshots."""
    made = MemoryFiles()
    made.make_directory(f"{ROOT}/{CLUSTER_METADATA_FOLDER}")
    for name, data in files.items():
        kind, _, number = name.partition("_")
        write_file(made, f"{int(number):020d}" + (".log" if kind == "log" else "-0000000001.checkpoint"), data)
    return made


def write_file(files: MemoryFiles, name: str, data: bytes) -> None:
    file = files.open(f"{ROOT}/{CLUSTER_METADATA_FOLDER}/{name}", create=True)
    file.append((data,), len(data))
    file.close()


def read_values(files: MemoryFiles) -> list[int]:
    return [int(value) for value in read_cluster_metadata(files, ROOT)]


def test_a_directory_without_has_none() -> None:
    files = MemoryFiles()
    files.make_directory(ROOT)
    assert read_values(files) == []


def test_all_segments_are_read_in_order_without_control_records() -> None:
    files = folder_with(log_0=make_batch(0, 1, control=True) + make_batch(1), log_3=make_batch(3, 3))
    assert read_values(files) == [1, 2, 3, 4, 5]


def test_the_newest_snapshot_replaces_earlier_records() -> None:
    files = folder_with(
        snapshot_2=make_snapshot(1), snapshot_5=make_snapshot(2), log_3=make_batch(3, 4), log_7=make_batch(7, 1)
    )
    write_file(files, f"{9:020d}-0000000001.checkpoint.part", b"what is not complete counts for nothing")
    assert read_values(files) == [1, 2, 5, 6, 7]


def test_a_torn_end_is_passed_over() -> None:
    assert read_values(folder_with(log_0=make_batch(0) + make_batch(2)[:-1])) == [0, 1]


def test_missing_records_are_refused() -> None:
    for files in (
        folder_with(log_3=make_batch(3)),
        folder_with(snapshot_2=make_snapshot(1), log_3=make_batch(3)),
        folder_with(log_0=make_batch(0), log_3=make_batch(3)),
        folder_with(log_0=make_batch(0) + make_batch(3)),
        folder_with(log_0=b"", log_1=make_batch(1)),
    ):
        with pytest.raises(LogDirectoryError, match=f"{CLUSTER_METADATA_FOLDER} cannot be read .* move it away"):
            read_values(files)


def test_half_a_snapshot_is_rejected_wherever_it_ends() -> None:
    whole = make_snapshot(2)
    for size_bytes in range(len(whole)):
        with pytest.raises(LogDirectoryError, match=r"0005-0000000001\.checkpoint is not whole"):
            read_values(folder_with(snapshot_5=whole[:size_bytes], log_5=make_batch(5)))


def test_damage_before_sound_records_is_no_torn_end() -> None:
    whole = make_batch(0) + make_batch(2)
    for position in range(len(make_batch(0))):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        # The leader epoch, which no checksum covers, is not used.
        if position in range(12, 16):
            continue
        with pytest.raises(LogDirectoryError, match=r"byte 0 of 0+\.log begins no batch of 0"):
            read_values(folder_with(log_0=bytes(damaged)))


def test_a_snapshot_alone_and_a_folder_without_files_can_be_read() -> None:
    assert read_values(folder_with(snapshot_5=make_snapshot(2))) == [1, 2]
    assert read_values(folder_with()) == []


def test_the_mark_tells_whether_kafka_went_on() -> None:
    files = folder_with(log_0=make_batch(0))
    assert takeover_mark.has_cluster_metadata(files, ROOT)
    assert not takeover_mark.is_taken_over(files, ROOT)
    assert not takeover_mark.is_metadata_unchanged(files, ROOT)
    assert not takeover_mark.may_be_older_metadata(files, ROOT)
    takeover_mark.write_takeover_mark(files, ROOT)
    assert takeover_mark.is_taken_over(files, ROOT)
    assert takeover_mark.is_metadata_unchanged(files, ROOT)
    assert takeover_mark.may_be_older_metadata(files, ROOT)
    write_file(files, f"{0:020d}.log", make_batch(2))
    assert not takeover_mark.is_metadata_unchanged(files, ROOT)
    assert not takeover_mark.may_be_older_metadata(files, ROOT)
    takeover_mark.write_takeover_mark(files, ROOT)
    write_file(files, f"{4:020d}.log", b"")
    assert not takeover_mark.is_metadata_unchanged(files, ROOT)


def test_a_mark_that_cannot_be_read_is_none() -> None:
    files = folder_with(log_0=make_batch(0))
    file = files.open(f"{ROOT}/{takeover_mark.FILE_NAME}", create=True)
    for contents in (b"9\n1\nx\n", b"0\n", b"0\n1\n"):
        file.truncate(0)
        file.append((contents,), len(contents))
        assert not takeover_mark.is_metadata_unchanged(files, ROOT)
        # The mark was written when our metadata began, so that may have been newer when it was lost.
        assert takeover_mark.may_be_older_metadata(files, ROOT)
