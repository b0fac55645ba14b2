"""Leftovers of an interrupted deletion, compaction or write in a partition's folder."""

from __future__ import annotations

from typing import Any

import pytest

from tests.storage.support import (
    Store,
    create_log,
    fill_log,
    list_offsets,
    make_batch,
    name_file,
    read_contents,
    reopen_log,
    rewrite_file,
)

PRODUCED: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}


def copy_file(store: Store, old: str, new: str) -> None:
    rewrite_file(store, new, lambda _: store.files.read(store.path(old)))


def test_files_of_interrupted_deletions_and_writes_are_removed(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 3)
    log.close()
    for leftover in (
        name_file(9, ".log.deleted"),
        name_file(9, ".snapshot.deleted"),
        name_file(9, ".log.cleaned"),
        name_file(9, ".index.cleaned"),
        name_file(7, ".index"),
        name_file(7, ".timeindex"),
        name_file(7, ".txnindex"),
        "t-0/leader-epoch-checkpoint.tmp",
    ):
        copy_file(store, name_file(0, ".log"), leftover)
    reopen_log(store, clean=True).close()
    assert store.files.list(store.path("t-0")) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000003.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


def test_a_complete_replacement_takes_its_place(store: Store) -> None:
    """Compaction joined the first three segments; a crash came before it removed the old ones."""
    log = create_log(store, segment_bytes=300)
    fill_log(log, 12)
    bases = [segment.base_offset for segment in log.segments]
    joined = b"".join(store.files.read(store.path(name_file(base, ".log"))) for base in bases[:3])
    log.close()
    rewrite_file(store, name_file(0, ".log.swap"), lambda _: joined)
    again = reopen_log(store, clean=True, segment_bytes=300)
    assert [segment.base_offset for segment in again.segments] == [0, *bases[3:]]
    assert list_offsets(again) == list(range(12))
    again.close()
    assert not any("swap" in name for name in store.files.list(store.path("t-0")))


@pytest.mark.parametrize("byte", [0, 3, 10])
def test_a_swap_with_a_rotten_last_header_removes_no_later_segment(store: Store, byte: int) -> None:
    log = create_log(store, segment_bytes=300)
    fill_log(log, 12)
    bases = [segment.base_offset for segment in log.segments]
    kept = [store.files.read(store.path(name_file(base, ".log"))) for base in bases]
    log.close()
    last = sum(map(len, kept[:3])) - len(make_batch())
    joined = bytearray(b"".join(kept[:3]))
    joined[last + byte] ^= 0x40
    rewrite_file(store, name_file(0, ".log.swap"), lambda _: bytes(joined))
    again = reopen_log(store, clean=True, segment_bytes=300)
    assert [segment.base_offset for segment in again.segments][-len(bases[3:]) :] == bases[3:]
    again.close()


def test_an_incomplete_swap_is_removed(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 3)
    log.close()
    before = read_contents(store)
    copy_file(store, name_file(0, ".log"), name_file(0, ".log.swap"))
    copy_file(store, name_file(0, ".log"), name_file(0, ".log.cleaned"))
    reopen_log(store, clean=True).close()
    assert read_contents(store) == before
