"""The words that users read instead of `[Errno 30] Read-only file system`."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from kafkacompat.storage.files.os_errors import describe_error


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EROFS, "the file system is read-only"),
        (errno.ENOENT, "there is no such file or folder"),
        (errno.EACCES, "this user has no permission"),
        (errno.ENOSPC, "the disk is full"),
        (errno.ENOTBLK, os.strerror(errno.ENOTBLK)),
    ],
)
def test_numbers_become_words(number: int, words: str) -> None:
    assert describe_error(OSError(number, os.strerror(number))) == words
    assert describe_error(OSError(number, os.strerror(number), "/data/x")) == f"/data/x: {words}"


def test_errors_of_real_files_name_their_paths(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    with pytest.raises(OSError) as raised:
        absent.read_bytes()
    assert describe_error(raised.value) == f"{absent}: there is no such file or folder"
    with pytest.raises(OSError) as raised:
        os.rename(absent, tmp_path / "other")
    assert describe_error(raised.value) == f"{absent} to {tmp_path / 'other'}: there is no such file or folder"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EIO, "the file takes no more bytes"), "the file takes no more bytes"),
        (NotADirectoryError("/x is no log directory"), "/x is no log directory"),
        (OSError(), "OSError"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (ValueError("not the system's"), "not the system's"),
        (OSError(errno.EBADF, os.strerror(errno.EBADF), 7), os.strerror(errno.EBADF)),
    ],
)
def test_an_error_with_its_own_words_keeps_them(error: Exception, words: str) -> None:
    assert describe_error(error) == words
