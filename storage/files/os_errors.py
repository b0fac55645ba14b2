"""The operating system's errors in words, for log lines and messages to users."""

from __future__ import annotations

import errno
import os

_WORDS = {
    errno.ENOENT: "there is no such file or folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EISDIR: "it is a folder, not a file",
    errno.EEXIST: "it exists already",
    errno.ENOTEMPTY: "the folder is not empty",
    errno.EACCES: "this user has no permission",
    errno.EPERM: "the operation is not permitted to this user",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file system allows no larger file",
    errno.EIO: "the disk reports an input/output error",
    errno.EMFILE: "the process has as many files open as it may; raise the limit (ulimit -n)",
    errno.ENFILE: "the system has as many files open as it can",
    errno.ENOMEM: "the system is out of memory",
    errno.ENAMETOOLONG: "the name is too long for the file system",
    errno.ELOOP: "its links lead in a circle",
    errno.EXDEV: "source and target are on different file systems",
    errno.EBUSY: "it is in use",
    errno.ETXTBSY: "it is in use",
    errno.ESTALE: "the network file system has lost it",
}


def describe_error(error: BaseException) -> str:
    """Say what failed, as `/data/orders-0: the disk is full`; of an error that is not the operating system's, its own text."""
    if not isinstance(error, OSError):
        return str(error)
    paths = [os.fsdecode(path) for path in (error.filename, error.filename2) if isinstance(path, (str, bytes))]
    return f"{' to '.join(paths)}: {_name_reason(error)}" if paths else _name_reason(error)


def _name_reason(error: OSError) -> str:
    if error.errno is None or error.strerror is None:
        return str(error) or type(error).__name__
    # A text that is not the system's own says more than the number.
    return _WORDS.get(error.errno, error.strerror) if error.strerror == os.strerror(error.errno) else error.strerror
