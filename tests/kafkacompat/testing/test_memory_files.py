"""Files in memory behave as those of the operating system, where a broker notices."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.storage.files.filesystem import DirectoryLockedError, Files
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.testing.memory_files import MEMORY_BYTES, SEND_BYTES, InMemoryFiles


@pytest.fixture(params=["memory", "system"])
def files(request: pytest.FixtureRequest) -> Files:
    return InMemoryFiles(lambda: 1_700_000_000_000) if request.param == "memory" else OsFiles()


@pytest.fixture
def folder(files: Files, tmp_path: Path) -> str:
    files.make_directory(f"{tmp_path}/log")
    return f"{tmp_path}/log"


def write(files: Files, path: str, *parts: bytes) -> None:
    file = files.open(path, create=True)
    file.append(parts, sum(map(len, parts)))
    file.sync()
    file.close()


def test_contents(files: Files, folder: str) -> None:
    write(files, f"{folder}/a", b"0123", b"456789")
    file = files.open(f"{folder}/a")
    assert (file.size(), file.pread(4, 3), file.pread(9, 8), file.pread(1, 10)) == (10, b"3456", b"89", b"")
    assert bytes(file.pread_nowait(4, 3) or b"") == b"3456"
    assert file.is_resident(0, 10)
    file.load(0, 10)
    file.truncate(2)
    file.append([memoryview(b"xy")], 2)
    assert files.read(f"{folder}/a") == b"01xy"
    file.truncate(6)
    assert files.read(f"{folder}/a") == b"01xy\0\0"
    assert files.size(f"{folder}/a") == 6
    assert files.disk_usage(folder).free_bytes > 0
    file.close()


def test_names(files: Files, folder: str) -> None:
    write(files, f"{folder}/a", b"a")
    write(files, f"{folder}/b", b"b")
    kept = files.open(f"{folder}/b")
    files.rename(f"{folder}/a", f"{folder}/b")
    assert (files.list(folder), files.read(f"{folder}/b"), kept.pread(1, 0)) == (["b"], b"a", b"b")
    kept.close()
    files.make_directory(f"{folder}/sub/deep")
    files.make_directory(f"{folder}/sub/deep")
    write(files, f"{folder}/sub/deep/c", b"c")
    files.rename(f"{folder}/sub", f"{folder}/renamed")
    assert files.read(f"{folder}/renamed/deep/c") == b"c"
    assert (files.exists(f"{folder}/sub"), files.is_directory(f"{folder}/renamed")) == (False, True)
    assert files.target(f"{folder}/b") == f"{folder}/b"
    assert files.target(f"{folder}/a") is None
    assert files.device(folder) == files.device(f"{folder}/b")
    files.remove(f"{folder}/renamed/deep/c")
    files.remove_directory(f"{folder}/renamed/deep")
    files.sync_directory(folder)
    files.set_modified_ms(f"{folder}/b", 1234)
    assert files.modified_ms(f"{folder}/b") == 1234
    files.write_again(f"{folder}/b", 0)
    assert files.read(f"{folder}/b") == b"a"


@pytest.mark.parametrize(
    "act",
    [
        lambda files, folder: files.open(f"{folder}/missing"),
        lambda files, folder: files.open(f"{folder}/missing/a", create=True),
        lambda files, folder: files.read(folder),
        lambda files, folder: files.size(f"{folder}/missing"),
        lambda files, folder: files.list(f"{folder}/file"),
        lambda files, folder: files.rename(f"{folder}/missing", f"{folder}/a"),
        lambda files, folder: files.remove(f"{folder}/missing"),
        lambda files, folder: files.remove_directory(folder),
        lambda files, folder: files.make_directory(f"{folder}/file"),
        lambda files, folder: files.sync_directory(f"{folder}/missing"),
    ],
)
def test_errors_are_those_of_the_system(tmp_path: Path, act: Callable[[Files, str], Any]) -> None:
    codes = []
    for files in (InMemoryFiles(lambda: 0), OsFiles()):
        files.make_directory(f"{tmp_path}/log")
        write(files, f"{tmp_path}/log/file", b"a")
        with pytest.raises(OSError) as failure:
            act(files, f"{tmp_path}/log")
        codes.append((type(failure.value), failure.value.errno))
    assert codes[0] == codes[1]


def test_a_lock_is_held_once(files: Files, folder: str) -> None:
    lock = files.lock(f"{folder}/.lock")
    with pytest.raises(DirectoryLockedError):
        files.lock(f"{folder}/.lock")
    lock.release()
    files.lock(f"{folder}/.lock").release()


def test_a_temporary_file_has_no_name(files: Files, folder: str) -> None:
    file = files.create_temporary(folder)
    file.append([b"abc"], 3)
    assert (file.pread(3, 0), files.list(folder)) == (b"abc", [])
    file.close()


def test_contents_are_sent_to_a_socket(files: Files, folder: str) -> None:
    data = os.urandom(SEND_BYTES * 3)
    write(files, f"{folder}/a", data)
    file = files.open(f"{folder}/a")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(5)
        received = b""
        while len(received) < len(data) - 10:
            # As much as the socket takes without waiting for its reader.
            wanted = min(len(data) - 10 - len(received), 64 * 1024)
            received += theirs.recv(file.send(ours.fileno(), 10 + len(received), wanted), socket.MSG_WAITALL)
        assert received == data[10:]
        assert file.send(ours.fileno(), len(data), 5) == 0
    file.close()


def test_memory_is_bounded_and_released() -> None:
    files = InMemoryFiles(lambda: 0, 100)
    files.make_directory("/log")
    write(files, "/log/a", b"x" * 60)
    file = files.open("/log/b", create=True)
    with pytest.raises(OSError) as failure:
        file.append([b"x" * 50], 50)
    assert failure.value.errno == errno.ENOSPC
    files.remove("/log/a")
    file.append([b"x" * 50], 50)
    assert files.disk_usage("/log").free_bytes == 50
    file.close()
    with pytest.raises(OSError, match="closed"):
        file.size()
    assert InMemoryFiles(lambda: 0).disk_usage("/").total_bytes == MEMORY_BYTES


def test_files_of_the_system_are_read(tmp_path: Path) -> None:
    (tmp_path / "certificate.pem").write_text("certificate")
    files = InMemoryFiles(lambda: 0)
    path = f"{tmp_path}/certificate.pem"
    assert (files.read(path), files.size(path), files.exists(path)) == (b"certificate", 11, False)
    assert files.modified_ms(path) > 0


def test_files_without_a_name_take_room_until_they_are_closed() -> None:
    files = InMemoryFiles(lambda: 0, capacity_bytes=100)
    files.make_directory("/log")
    for _ in range(3):
        temporary = files.create_temporary("/log")
        temporary.append([b"t" * 60], 60)
        removed = files.open("/log/a", create=True)
        files.remove("/log/a")
        removed.append([b"r" * 40], 40)
        assert files.disk_usage("/log").free_bytes == 0
        for file in (temporary, removed):
            file.close()
            file.close()
        assert files.disk_usage("/log").free_bytes == 100
