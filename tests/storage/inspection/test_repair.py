"""Repairs: the steps follow the plan, nothing else is lost, and the log opens again."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from kafkacompat.storage.files.filesystem import DirectoryLockedError
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.inspection.directory_check import check_target, find_check_target
from kafkacompat.storage.inspection.findings import Finding
from kafkacompat.storage.inspection.repair import RepairStep, lock_directory, plan_repair
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.segment_files import REMOVED_SUFFIX
from kafkacompat.wire.record_batch import build_batch
from tests.storage.inspection.support import FOLDER, list_problems, write_directory
from tests.storage.support import (
    NOW_MS,
    TOPIC_ID,
    Store,
    append_batch,
    make_batch,
    rewrite_file,
    roll_log,
    stored_headers,
    take_directory,
)

END = 48
BATCH_RECORDS = 2


def plan_steps(store: Store, *, truncate: bool = False) -> list[RepairStep]:
    place = find_check_target(store.files, store.path("data"))
    findings: list[Finding] = []
    partitions = check_target(store.files, place, findings.append, lambda _: None, findings.append, live=False)  # type: ignore[arg-type]
    return plan_repair(store.files, place, partitions, truncate)


def list_names(steps: list[RepairStep]) -> list[str]:
    return [os.path.basename(step.path) for step in steps]


def run_steps(steps: list[RepairStep]) -> None:
    for step in steps:
        step.run()


def read_files(store: Store) -> dict[str, bytes]:
    return {name: store.files.read(store.path(FOLDER, name)) for name in store.files.list(store.path(FOLDER))}


def open_log(store: Store) -> Log:
    return take_directory(store).open_log(
        "t", 0, TOPIC_ID, LogConfig(segment_bytes=500, index_interval_bytes=100), NOW_MS
    )


def flip_byte(store: Store, file_name: str, position: int) -> None:
    rewrite_file(
        store,
        f"{FOLDER}/{file_name}",
        lambda data: data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :],
    )


def list_base_offsets(store: Store) -> list[int]:
    return [int(name.removesuffix(".log")) for name in read_files(store) if name.endswith(".log")]


def test_a_sound_directory_needs_nothing(store: Store) -> None:
    write_directory(store)
    assert plan_steps(store) == plan_steps(store, truncate=True) == []


def test_a_directory_in_use_is_refused(store: Store) -> None:
    directory, log = write_directory(store, close=False)
    place = find_check_target(store.files, store.path("data"))
    with pytest.raises(DirectoryLockedError):
        lock_directory(store.files, place)
    with pytest.raises(DirectoryLockedError):
        lock_directory(store.files, find_check_target(store.files, store.path(FOLDER)))
    directory.close([log])
    lock = lock_directory(store.files, place)
    assert lock is not None
    lock.release()


def test_indexes_are_rebuilt_and_nothing_else_changes(store: Store) -> None:
    write_directory(store)
    before = read_files(store)
    first, second = list_base_offsets(store)[:2]
    flip_byte(store, f"{first:020d}.index", 3)
    store.files.remove(store.path(FOLDER, f"{second:020d}.timeindex"))
    steps = plan_steps(store)
    assert list_names(steps) == [".kafka_cleanshutdown", f"{first:020d}.index", f"{second:020d}.index"]
    assert all(step.lost is None for step in steps)
    run_steps(steps)
    assert list_problems(store) == []
    after = read_files(store)
    assert after.keys() == before.keys()
    assert {name for name in before if before[name] != after[name]} <= {
        f"{base:020d}{suffix}" for base in (first, second) for suffix in (".index", ".timeindex")
    }
    assert [header.base_offset for header in stored_headers(open_log(store))] == list(range(0, END, BATCH_RECORDS))


def test_snapshots_and_epochs(store: Store) -> None:
    _, log = write_directory(store)
    entries = log.leader_epochs.entries
    snapshot = f"{END:020d}.snapshot"
    flip_byte(store, snapshot, 9)
    rewrite_file(store, f"{FOLDER}/leader-epoch-checkpoint", lambda _: b"0\n1\n0 0\n")
    steps = plan_steps(store)
    assert list_names(steps) == [".kafka_cleanshutdown", snapshot, "leader-epoch-checkpoint"]
    run_steps(steps)
    assert list_problems(store) == []
    log = open_log(store)
    assert log.leader_epochs.entries == entries
    assert log.producer_state.producers[5].batches[-1].last_offset == END - 1
    duplicate = make_batch(2, timestamp=NOW_MS + 230, codec=3, producer_id=5, producer_epoch=0, base_sequence=END - 2)
    assert append_batch(log, duplicate, leader_epoch=2).duplicate


def test_damage_stays_without_the_option_to_truncate(store: Store) -> None:
    write_directory(store)
    flip_byte(store, f"{list_base_offsets(store)[1]:020d}.log", 80)
    assert plan_steps(store) == []


@pytest.mark.parametrize("slot", [0, 2, -1])
@pytest.mark.parametrize("byte", [8, 80, 200])
def test_a_log_is_cut_at_the_first_damaged_batch_and_the_rest_is_kept_aside(store: Store, slot: int, byte: int) -> None:
    write_directory(store)
    before = read_files(store)
    base = list_base_offsets(store)[slot]
    flip_byte(store, f"{base:020d}.log", byte)
    damaged = store.files.read(store.path(FOLDER, f"{base:020d}.log"))
    (finding,) = [candidate for candidate in list_problems(store) if candidate.path.endswith(".log")]
    steps = plan_steps(store, truncate=True)
    lost = sorted(step.lost for step in steps if step.lost is not None)
    assert lost[0][0] == finding.first_offset and lost[-1][1] == END - 1
    assert all(left[1] + 1 == right[0] for left, right in pairwise(lost))
    run_steps(steps)
    assert list_problems(store) == []
    after = read_files(store)
    cut = after[f"{base:020d}.log"]
    assert cut + after[f"{base:020d}.log.{len(cut)}{REMOVED_SUFFIX}"] == damaged
    for later in [name for name in before if name.endswith(".log") and int(name[:20]) > base]:
        assert after[later + REMOVED_SUFFIX] == before[later]
    log = open_log(store)
    assert log.log_end_offset == finding.first_offset
    expected = list(range(0, finding.first_offset, BATCH_RECORDS))
    assert [header.base_offset for header in stored_headers(log)] == expected
    assert append_batch(log, make_batch(), leader_epoch=2).base_offset == finding.first_offset


def test_a_torn_end_is_left_to_the_next_start(memory: Store) -> None:
    directory, _ = write_directory(memory, close=False)
    directory.release()
    rewrite_file(memory, f"{FOLDER}/{list_base_offsets(memory)[-1]:020d}.log", lambda data: data[:-3])
    assert plan_steps(memory, truncate=True) == []


def test_a_checkpoint_that_cannot_be_read_is_set_aside(store: Store) -> None:
    write_directory(store)
    rewrite_file(store, "data/replication-offset-checkpoint", lambda _: b"9\n0\n")
    steps = plan_steps(store)
    assert list_names(steps) == ["replication-offset-checkpoint"]
    run_steps(steps)
    assert list_problems(store) == []
    assert store.files.read(store.path("data/replication-offset-checkpoint.removed")) == b"9\n0\n"


def test_a_transaction_index_is_rebuilt_from_the_markers(memory: Store) -> None:
    directory = take_directory(memory)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    records = make_batch(2, producer_id=3, producer_epoch=0, base_sequence=0, transactional=True)
    append_batch(log, records, from_client=False)
    roll_log(log)
    marker = build_batch(
        [(NOW_MS, b"\0\0\0\0", bytes(6), [])], producer_id=3, producer_epoch=0, transactional=True, control=True
    )
    append_batch(log, marker, from_client=False)
    roll_log(log)
    directory.close([log])
    path = f"{FOLDER}/{2:020d}.txnindex"
    right = b"\0\0" + b"".join(number.to_bytes(8, "big") for number in (3, 0, 2, 3))
    rewrite_file(memory, path, lambda _: right[:9] + b"\7" + right[10:])
    steps = plan_steps(memory)
    assert list_names(steps) == [".kafka_cleanshutdown", f"{2:020d}.txnindex"]
    run_steps(steps)
    assert memory.files.read(memory.path(path)) == right
    assert list_problems(memory) == []


def test_a_batch_with_a_wrong_leader_epoch_does_not_make_epochs(memory: Store) -> None:
    _, log = write_directory(memory)
    flip_byte(memory, f"{list_base_offsets(memory)[1]:020d}.log", 15)
    assert plan_steps(memory) == []
    rewrite_file(memory, f"{FOLDER}/leader-epoch-checkpoint", lambda _: b"7\n0\n")
    run_steps(plan_steps(memory))
    assert open_log(memory).leader_epochs.entries == log.leader_epochs.entries


def test_checkpoints_are_lowered_to_the_end_of_a_log_that_is_short(memory: Store) -> None:
    write_directory(memory)
    last = f"{FOLDER}/{list_base_offsets(memory)[-1]:020d}.log"
    rewrite_file(memory, last, lambda data: data[: 12 + int.from_bytes(data[8:12], "big")])
    run_steps(plan_steps(memory))
    assert [finding for finding in list_problems(memory) if "checkpoint" in finding.fault] == []


def test_a_last_batch_with_an_offset_that_no_segment_can_hold(memory: Store) -> None:
    write_directory(memory, batches=3)
    path = f"{list_base_offsets(memory)[-1]:020d}.log"
    data = memory.files.read(memory.path(FOLDER, path))
    last = data.rindex((4).to_bytes(8, "big"))
    flip_high = data[: last + 2] + bytes([data[last + 2] ^ 1]) + data[last + 3 :]
    rewrite_file(memory, f"{FOLDER}/{path}", lambda _: flip_high)
    run_steps(plan_steps(memory, truncate=True))
    assert list_problems(memory) == []
    assert open_log(memory).log_end_offset == 4


def test_files_of_an_earlier_repair_stay(store: Store) -> None:
    """A bad spot of the disk may fail again."""
    write_directory(store)
    kept: dict[str, bytes] = {}
    for _ in range(3):
        base = list_base_offsets(store)[1]
        flip_byte(store, f"{base:020d}.log", 80)
        run_steps(plan_steps(store, truncate=True))
        removed = {name: data for name, data in read_files(store).items() if ".log." in name}
        assert kept.items() < removed.items()
        kept = removed
        directory = take_directory(store)
        log = directory.open_log("t", 0, TOPIC_ID, LogConfig(segment_bytes=500, index_interval_bytes=100), NOW_MS)
        while log.log_end_offset < END:
            append_batch(log, make_batch(2), leader_epoch=3)
        directory.close([log])
    assert list_problems(store) == []


def test_a_link_to_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    store = Store(OsFiles(), str(tmp_path))
    directory, log = write_directory(store, close=False)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "t-0"
    link.symlink_to(tmp_path / FOLDER)
    place = find_check_target(store.files, str(link))
    with pytest.raises(DirectoryLockedError):
        lock_directory(store.files, place)
    directory.close([log])
    lock = lock_directory(store.files, place)
    assert lock is not None
    lock.release()
