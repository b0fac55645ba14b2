"""Checking a log directory: a sound one passes, and every change is found."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.inspection.directory_check import check_target, count_log_bytes, find_check_target
from kafkacompat.storage.inspection.findings import UnreadablePath
from kafkacompat.storage.log_config import LogConfig
from tests.storage.inspection.support import FOLDER, list_findings, list_problems, write_directory
from tests.storage.support import (
    NOW_MS,
    TOPIC_ID,
    Store,
    append_batch,
    make_batch,
    rewrite_file,
    roll_log,
    take_directory,
)


def list_logs(store: Store) -> list[str]:
    return [f"{FOLDER}/{name}" for name in store.files.list(store.path(FOLDER)) if name.endswith(".log")]


def flip_bit(position: int, bit: int = 0) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        flipped = bytearray(data)
        flipped[position] ^= 1 << bit
        return bytes(flipped)

    return change


def test_a_directory_that_was_closed_is_sound(store: Store) -> None:
    write_directory(store)
    assert len(list_logs(store)) > 3
    assert list_findings(store) == []
    assert list_findings(store, FOLDER) == []


def test_epochs_of_deleted_records_need_not_be_known(memory: Store) -> None:
    directory, log = write_directory(memory, close=False)
    log.trimmer.advance_log_start_offset(log.segments[1].base_offset + 1)
    directory.close([log])
    assert list_findings(memory) == []


def test_a_directory_that_is_in_use_is_sound_and_stays_in_use(store: Store) -> None:
    directory, log = write_directory(store, close=False)
    assert list_findings(store) == []
    append_batch(log, make_batch(), leader_epoch=2)
    directory.close([log])
    assert list_findings(store) == []


def test_a_directory_whose_broker_was_killed_is_sound(memory: Store) -> None:
    directory, _ = write_directory(memory, close=False)
    directory.release()
    assert list_findings(memory) == []


@pytest.mark.parametrize("batches", [1, 11, 12, 21])
def test_an_epoch_that_a_killed_broker_had_just_begun_is_sound(memory: Store, batches: int) -> None:
    directory, _ = write_directory(memory, batches=batches, close=False)
    directory.release()
    assert list_findings(memory) == []


def test_every_flipped_bit_of_a_log_file_is_found(memory: Store) -> None:
    write_directory(memory, batches=12)
    path = list_logs(memory)[0]
    size_bytes = memory.files.size(memory.path(path))
    first_batch, second_batch = 100, 230
    assert size_bytes > second_batch
    for position in (*range(first_batch), *range(first_batch, second_batch, 7), size_bytes - 1):
        for bit in (0, 7):
            rewrite_file(memory, path, flip_bit(position, bit))
            assert list_problems(memory), f"bit {bit} of byte {position}"
            rewrite_file(memory, path, flip_bit(position, bit))
    assert list_problems(memory) == []


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
def test_every_flipped_bit_of_the_other_files_is_found(memory: Store, suffix: str) -> None:
    write_directory(memory)
    names = [name for name in memory.files.list(memory.path(FOLDER)) if name.endswith(suffix)]
    assert len(names) > 2
    for name in names[:2]:
        path = f"{FOLDER}/{name}"
        assert memory.files.size(memory.path(path)) > 0 or suffix == ".snapshot"
        for position in range(memory.files.size(memory.path(path))):
            rewrite_file(memory, path, flip_bit(position))
            assert [finding.path for finding in list_problems(memory)] == [memory.path(path)], position
            rewrite_file(memory, path, flip_bit(position))


def test_damage_is_reported_with_position_and_offsets(memory: Store) -> None:
    write_directory(memory)
    whole = memory.files.read(memory.path(list_logs(memory)[1]))
    base = int(os.path.basename(list_logs(memory)[1]).split(".")[0])
    second = 12 + int.from_bytes(whole[8:12], "big")
    rewrite_file(memory, list_logs(memory)[1], flip_bit(second + 80))
    (finding,) = list_problems(memory)
    assert finding.path == memory.path(list_logs(memory)[1])
    assert (finding.position, finding.first_offset, finding.last_offset) == (second, base + 2, base + 3)
    assert "checksum" in finding.fault


def test_damage_at_the_end_of_a_rolled_segment_extends_to_the_next_segment(memory: Store) -> None:
    write_directory(memory)
    following = int(os.path.basename(list_logs(memory)[2]).split(".")[0])
    rewrite_file(memory, list_logs(memory)[1], lambda data: data[:-3])
    (finding,) = [candidate for candidate in list_problems(memory) if candidate.path.endswith(".log")]
    assert (finding.first_offset, finding.last_offset) == (following - 2, following - 1)


def test_a_torn_end_after_a_crash_is_a_note_and_a_finding_after_a_clean_stop(memory: Store) -> None:
    directory, _ = write_directory(memory, close=False)
    directory.release()
    rewrite_file(memory, list_logs(memory)[-1], lambda data: data[:-3])
    (note,) = list_findings(memory)
    assert note.note and "the next start cuts them off" in note.fault
    memory.files.open(memory.path("data/.kafka_cleanshutdown"), create=True).close()
    assert [finding.note for finding in list_findings(memory) if finding.path.endswith(".log")] == [False]


def test_a_missing_segment_is_found_unless_the_log_is_compacted(memory: Store) -> None:
    write_directory(memory)
    gone = list_logs(memory)[1]
    first = int(os.path.basename(gone).split(".")[0])
    last = int(os.path.basename(list_logs(memory)[2]).split(".")[0]) - 1
    for suffix in (".log", ".index", ".timeindex"):
        memory.files.remove(memory.path(gone.removesuffix(".log") + suffix))
    (finding,) = list_problems(memory)
    assert (finding.first_offset, finding.last_offset) == (first, last)
    rewrite_file(memory, "data/cleaner-offset-checkpoint", lambda _: b"0\n1\nt 0 40\n")
    assert list_problems(memory) == []


@pytest.mark.parametrize(
    ("file_name", "contents", "words"),
    [
        ("data/recovery-point-offset-checkpoint", b"0\nx\n", "does not"),
        ("data/replication-offset-checkpoint", b"0\n1\nt 0 1000\n", "high watermark says 1000, but the log ends at 48"),
        ("data/log-start-offset-checkpoint", b"0\n1\nt 0 1000\n", "log start offset says 1000"),
        ("data/meta.properties", b"version=9\n", "version 9"),
        (f"{FOLDER}/leader-epoch-checkpoint", b"0\n1\n0 0\n", "the batches have epoch 1, the file says 0"),
        (f"{FOLDER}/leader-epoch-checkpoint", b"0\n2\n1 0\n0 20\n", "cannot follow"),
        (f"{FOLDER}/leader-epoch-checkpoint", b"7\n", "cannot be read"),
        (f"{FOLDER}/partition.metadata", b"version: 0\ntopic_id: x", "does not name a topic id"),
        (f"{FOLDER}/{100:020d}.snapshot", b"\0\1\x48\x67\x4b\xc7\0\0\0\0", "offset 100, but the log ends at 48"),
    ],
)
def test_small_files_that_are_wrong(memory: Store, file_name: str, contents: bytes, words: str) -> None:
    write_directory(memory)
    if file_name.endswith("leader-epoch-checkpoint") and contents == b"7\n":
        contents = b"7\n0\n"
    rewrite_file(memory, file_name, lambda _: contents)
    (finding,) = list_problems(memory)
    assert words in finding.fault


def test_missing_indexes(memory: Store) -> None:
    write_directory(memory)
    memory.files.remove(memory.path(list_logs(memory)[0].removesuffix(".log") + ".index"))
    (finding,) = list_problems(memory)
    assert finding.path.endswith(".index") and finding.fault == "it is missing"


def test_leftovers_are_notes(memory: Store) -> None:
    write_directory(memory)
    for name in ("00000000000000000007.log.deleted", "00000000000000000000.log.cleaned", "x.tmp", f"{7:020d}.index"):
        rewrite_file(memory, f"{FOLDER}/{name}", lambda data: data)
    memory.files.make_directory(memory.path("data/u-0.0123-delete"))
    findings = list_findings(memory)
    assert len(findings) == 5 and all(finding.note for finding in findings)


def test_a_folder_that_a_crash_left_empty_is_a_partition_without_segments(memory: Store) -> None:
    take_directory(memory).close([])
    memory.files.make_directory(memory.path(FOLDER))
    assert list_problems(memory) == []


def test_partitions_of_a_topic_with_different_ids_are_found(memory: Store) -> None:
    directory = take_directory(memory)
    opened = [directory.open_log("t", index, bytes([index + 1]) * 16, LogConfig(), NOW_MS) for index in (0, 1)]
    directory.close(opened)
    (finding,) = list_problems(memory)
    assert "another id" in finding.fault


def test_an_aborted_transaction_needs_its_marker(memory: Store) -> None:
    directory = take_directory(memory)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    append_batch(log, make_batch(2))
    marker = make_batch(
        1, key=b"\0\0\0\0", size_bytes=6, producer_id=3, producer_epoch=0, transactional=True, control=True
    )
    append_batch(log, marker, from_client=False)
    roll_log(log)
    directory.close([log])
    entry = b"\0\0" + b"".join(number.to_bytes(8, "big") for number in (3, 0, 2, 3))
    path = f"{FOLDER}/{0:020d}.txnindex"
    rewrite_file(memory, path, lambda _: entry)
    assert list_problems(memory) == []
    for position in (0, 9, 17, 25, 26):
        rewrite_file(memory, path, flip_bit(position, 2))
        assert [finding.path for finding in list_problems(memory)] == [memory.path(path)], position
        rewrite_file(memory, path, flip_bit(position, 2))


def test_a_segment_removed_during_the_check_is_no_finding(memory: Store) -> None:
    _, log = write_directory(memory, close=False)
    place = find_check_target(memory.files, memory.path("data"))
    seen = 0

    def progress(size_bytes: int) -> None:
        nonlocal seen
        if not seen:
            old = list(log.segments)[1:3]
            log.trimmer.detach(list(log.segments)[:3])
            log.trimmer.delete_segments(old)
        seen += size_bytes

    reports: list[object] = []
    check_target(memory.files, place, reports.append, progress, reports.append)
    assert reports == [] and seen > 0


def test_an_unreadable_file_does_not_end_the_check(memory: Store) -> None:
    write_directory(memory)
    place = find_check_target(memory.files, memory.path("data"))
    place = place._replace(folders=[memory.path("data/gone-0"), *place.folders])
    refused: list[UnreadablePath] = []
    checked = check_target(memory.files, place, lambda _: None, lambda _: None, refused.append)
    assert [unreadable.path for unreadable in refused] == [memory.path("data/gone-0")]
    assert len(checked) == 1
    assert count_log_bytes(memory.files, find_check_target(memory.files, memory.path("data"))) > 1000


def test_a_folder_that_is_no_data_directory_is_rejected(store: Store) -> None:
    store.files.make_directory(store.path("other"))
    with pytest.raises(NotADirectoryError):
        find_check_target(store.files, store.path("other"))
    with pytest.raises(OSError):
        find_check_target(OsFiles(), store.path("absent"))


def test_offset_indexes_of_kafka_0_11_name_first_offsets(memory: Store) -> None:
    write_directory(memory)
    path = list_logs(memory)[0].removesuffix(".log") + ".index"
    entries = memory.files.read(memory.path(path))
    assert len(entries) >= 16

    def first_offsets(data: bytes) -> bytes:
        changed = bytearray(data)
        for start in range(0, len(data), 8):
            changed[start + 3] -= 1  # each batch has two records
        return bytes(changed)

    rewrite_file(memory, path, first_offsets)
    assert list_problems(memory) == []


@pytest.mark.parametrize(("byte", "bit"), [(12, 7), (13, 6), (14, 0), (15, 0), (15, 1)])
@pytest.mark.parametrize("slot", [0, 2, -1])
def test_a_batch_with_another_leader_epoch_than_its_neighbours_is_found(
    memory: Store, slot: int, byte: int, bit: int
) -> None:
    """The batch is wrong, not the leader epoch checkpoint."""
    write_directory(memory)
    path = list_logs(memory)[slot]
    rewrite_file(memory, path, flip_bit(byte, bit))
    (finding,) = list_problems(memory)
    assert (finding.path, finding.position) == (memory.path(path), 0)
    assert "leader epoch" in finding.fault
    memory.files.remove(memory.path(FOLDER, "leader-epoch-checkpoint"))
    # This epoch is that of the previous batch.
    is_like_its_neighbour = (slot, byte, bit) == (2, 15, 0)
    assert (memory.path(path) in [problem.path for problem in list_problems(memory)]) is not is_like_its_neighbour
