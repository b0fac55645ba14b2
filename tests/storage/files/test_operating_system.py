"""The contract of Files, which the real, the portable and the in-memory file system keep."""

from __future__ import annotations

import errno
import os
import resource
import sys
from pathlib import Path

import pytest

from kafkacompat.storage.files.filesystem import DirectoryLockedError, SyncError
from kafkacompat.storage.files.operating_system import RESIDENCY_STEP, OsFiles, raise_open_file_limit, read_boot_id
from tests.storage.support import Store


def write_file(store: Store, name: str, data: bytes) -> None:
    file = store.files.open(store.path(name), create=True)
    file.append((data,), len(data))
    file.close()


def test_appends_gather_parts_at_the_end(store: Store) -> None:
    file = store.files.open(store.path("a"), create=True)
    file.append((b"ab", memoryview(b"cd")), 4)
    file.append((b"ef",), 2)
    assert file.size() == 6
    assert file.pread(100, 1) == b"bcdef"
    assert file.pread(2, 2) == b"cd"
    assert file.pread(2, 6) == b""
    file.close()
    assert store.files.read(store.path("a")) == b"abcdef"


def test_an_append_after_truncation_continues_there(store: Store) -> None:
    file = store.files.open(store.path("a"), create=True)
    file.append((b"abcdef",), 6)
    file.truncate(2)
    file.append((b"x",), 1)
    assert file.pread(10, 0) == b"abx"
    file.close()


@pytest.mark.parametrize("portable", [False, True])
def test_a_failed_sync_raises_a_sync_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portable: bool) -> None:
    def failing(fd: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "fsync", failing)
    monkeypatch.setattr(os, "fdatasync", failing)
    files = OsFiles(portable)
    file = files.open(str(tmp_path / "a"), create=True)
    for sync in (file.sync, lambda: files.sync_directory(str(tmp_path))):
        with pytest.raises(SyncError, match="no room") as failed:
            sync()
        assert failed.value.errno == errno.ENOSPC
    file.close()


@pytest.mark.parametrize("position", [0, 100_000, 600_000, 700_000])
def test_writing_again_changes_nothing(store: Store, position: int) -> None:
    data = bytes(range(200)) * 3000
    write_file(store, "a", data)
    store.files.write_again(store.path("a"), position)
    assert store.files.read(store.path("a")) == data


def test_opening_keeps_existing_contents(store: Store) -> None:
    write_file(store, "a", b"abc")
    write_file(store, "a", b"def")
    assert store.files.read(store.path("a")) == b"abcdef"
    assert store.files.size(store.path("a")) == 6


def test_opening_an_absent_file_needs_create(store: Store) -> None:
    with pytest.raises(FileNotFoundError):
        store.files.open(store.path("a"))
    with pytest.raises(FileNotFoundError):
        store.files.read(store.path("a"))
    with pytest.raises(FileNotFoundError):
        store.files.size(store.path("a"))


def test_data_just_written_is_resident(store: Store) -> None:
    file = store.files.open(store.path("a"), create=True)
    data = bytes(300_000)
    file.append((data,), len(data))
    file.sync()
    file.load(0, len(data))
    assert file.is_resident(0, len(data))
    nowait = file.pread_nowait(10, 5)
    assert nowait is not None and bytes(nowait) == bytes(10)
    at_end = file.pread_nowait(10, len(data))
    assert at_end is not None and bytes(at_end) == b""
    file.close()


def test_names_are_listed_renamed_and_removed(store: Store) -> None:
    write_file(store, "b", b"1")
    write_file(store, "a", b"2")
    store.files.make_directory(store.path("d", "e"))
    store.files.make_directory(store.path("d", "e"))
    assert store.files.list(store.root) == ["a", "b", "d"]
    store.files.rename(store.path("a"), store.path("b"))
    assert store.files.read(store.path("b")) == b"2"
    assert not store.files.exists(store.path("a"))
    store.files.sync_directory(store.root)
    store.files.remove(store.path("b"))
    store.files.remove_directory(store.path("d", "e"))
    assert store.files.list(store.path("d")) == []
    assert store.files.is_directory(store.path("d"))
    assert not store.files.is_directory(store.path("b"))


def test_a_folder_with_contents_moves_and_is_not_removed(store: Store) -> None:
    store.files.make_directory(store.path("d"))
    write_file(store, "d/a", b"1")
    with pytest.raises(OSError, match=r"\S"):
        store.files.remove_directory(store.path("d"))
    store.files.rename(store.path("d"), store.path("e"))
    assert store.files.read(store.path("e", "a")) == b"1"


def test_an_open_file_outlives_its_name(store: Store) -> None:
    write_file(store, "a", b"abc")
    file = store.files.open(store.path("a"))
    store.files.remove(store.path("a"))
    assert file.pread(3, 0) == b"abc"
    file.close()


def test_a_lock_has_one_holder(store: Store) -> None:
    lock = store.files.lock(store.path(".lock"))
    with pytest.raises(DirectoryLockedError):
        store.files.lock(store.path(".lock"))
    lock.release()
    store.files.lock(store.path(".lock")).release()


def test_the_disk_has_a_size(store: Store) -> None:
    usage = store.files.disk_usage(store.root)
    assert 0 < usage.free_bytes <= usage.total_bytes


def test_modification_times_are_milliseconds(store: Store) -> None:
    write_file(store, "a", b"abc")
    modified_ms = store.files.modified_ms(store.path("a"))
    assert modified_ms == 0 or 1_600_000_000_000 < modified_ms < 4_000_000_000_000


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may write fewer bytes than it got; the rest follows."""
    real = os.write
    monkeypatch.setattr(os, "writev", lambda fd, parts: real(fd, b"".join(parts)[:3]))
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:2])))
    file = OsFiles().open(f"{tmp_path}/a", create=True)
    file.append((b"abcd", b"efgh"), 8)
    assert file.pread(10, 0) == b"abcdefgh"
    file.close()


@pytest.mark.parametrize("portable", [True, False])
def test_syncing_asks_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portable: bool) -> None:
    synced: list[int] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, synced.append, raising=False)
    files = OsFiles(portable=portable)
    file = files.open(f"{tmp_path}/a", create=True)
    file.sync()
    assert synced == [file.fileno()]
    file.close()
    files.sync_directory(str(tmp_path))
    assert len(synced) == 2


needs_nowait = pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="only Linux tells what is in memory")


@needs_nowait
def test_the_page_cache_is_asked_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range counts as resident only when each of its probes is."""
    file = OsFiles(portable=False).open(f"{tmp_path}/a", create=True)
    probed = []

    def preadv(fd: int, buffers: list[bytearray], position: int, flags: int) -> int:
        probed.append(position)
        if position == 2 * RESIDENCY_STEP:
            raise OSError(errno.EAGAIN, "cold")
        return 1

    monkeypatch.setattr(os, "preadv", preadv)
    assert file.is_resident(0, 2 * RESIDENCY_STEP)
    assert probed == [0, RESIDENCY_STEP, 2 * RESIDENCY_STEP - 1]
    assert not file.is_resident(0, 2 * RESIDENCY_STEP + 2)
    assert file.pread_nowait(10, 2 * RESIDENCY_STEP) is None
    file.close()


@needs_nowait
def test_a_file_system_without_nowait_counts_as_resident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def preadv(fd: int, buffers: list[bytearray], position: int, flags: int) -> int:
        raise OSError(errno.EOPNOTSUPP, "no")

    monkeypatch.setattr(os, "preadv", preadv)
    file = OsFiles(portable=False).open(f"{tmp_path}/a", create=True)
    file.append((b"abc",), 3)
    assert file.is_resident(0, 3)
    assert file.pread_nowait(3, 0) == b"abc"
    file.close()


def test_as_many_files_may_be_open_as_the_process_may_ask_for() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        assert raise_open_file_limit() == (sys.maxsize if before[1] == resource.RLIM_INFINITY else before[1])
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_boot_has_an_id_on_linux_only(monkeypatch: pytest.MonkeyPatch) -> None:
    boot_id = read_boot_id()
    assert len(boot_id) == (36 if sys.platform == "linux" else 0)
    assert read_boot_id() == boot_id
    monkeypatch.setattr("kafkacompat.storage.files.operating_system.BOOT_ID_FILE", "/proc/nothing")
    assert read_boot_id() == ""
