"""Checks of hidden faults, and of oddities that are no faults."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.storage.inspection.directory_check import count_log_bytes, find_check_target
from kafkacompat.storage.inspection.segment_check import MOST_GAPS, CheckedSegment
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.walk import Stretch
from kafkacompat.wire.record_batch import read_header
from tests.storage.inspection.support import FOLDER, list_problems, write_directory
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


@pytest.mark.parametrize("in_same_segment", [True, False])
def test_an_aborted_transaction_without_an_entry_is_found(memory: Store, in_same_segment: bool) -> None:
    """Consumers would receive its records."""
    directory = take_directory(memory)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    producer: dict[str, Any] = {"producer_id": 3, "producer_epoch": 0, "transactional": True}
    for commit in (True, False):
        base_sequence = 0 if commit else 2
        append_batch(log, make_batch(2, base_sequence=base_sequence, **producer), from_client=False)
        if not (in_same_segment or commit):
            roll_log(log)
        marker = make_batch(1, key=bytes((0, 0, 0, commit)), size_bytes=6, control=True, **producer)
        append_batch(log, marker, from_client=False)
    roll_log(log)
    directory.close([log])
    base = 0 if in_same_segment else 5
    path = f"{FOLDER}/{base:020d}.txnindex"
    entry = b"\0\0" + b"".join(number.to_bytes(8, "big") for number in (3, 3, 5, 6))
    rewrite_file(memory, path, lambda _: entry)
    assert list_problems(memory) == []
    memory.files.remove(memory.path(path))
    (finding,) = list_problems(memory)
    assert finding.path == memory.path(path) and "aborted a transaction at 5" in finding.fault


def test_a_single_folder_is_compacted_if_the_log_directory_says_so(memory: Store) -> None:
    write_directory(memory)
    memory.files.remove(memory.path(list_logs(memory)[1]))
    assert any("no batch holds" in finding.fault for finding in list_problems(memory, FOLDER))
    rewrite_file(memory, "data/cleaner-offset-checkpoint", lambda _: b"0\n1\nt 0 20\n")
    assert not any("no batch holds" in finding.fault for finding in list_problems(memory, FOLDER))


def test_files_that_vanish_while_they_are_counted_are_no_fault(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write_directory(memory)
    place, files = find_check_target(memory.files, memory.path("data")), memory.files
    whole, going = count_log_bytes(files, place), memory.path(list_logs(memory)[1])
    size_of, list_of = files.size, files.list

    def size(path: str) -> int:
        if path == going:
            raise FileNotFoundError(path)
        return size_of(path)

    monkeypatch.setattr(files, "size", size)
    assert count_log_bytes(files, place) == whole - size_of(going)

    def gone(path: str) -> list[str]:
        if path.endswith("t-0"):
            raise FileNotFoundError(path)
        return list_of(path)

    monkeypatch.setattr(files, "list", gone)
    assert count_log_bytes(files, place) == 0


def test_only_the_first_of_very_many_gaps_are_remembered() -> None:
    checked = CheckedSegment("0.log", 0, 1 << 30, 0)
    for offset in range(0, 4 * MOST_GAPS, 2):
        header = read_header(make_batch(base_offset=offset))
        checked.add_stretch(Stretch(0, 100, offset, offset, header=header))
    assert len(checked.gaps) == MOST_GAPS and checked.gaps[:2] == [(1, 1), (3, 3)]
