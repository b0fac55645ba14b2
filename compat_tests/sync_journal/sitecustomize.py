"""Loaded by a broker's interpreter itself: writes down every file that is synced, and how long it was when that began."""

from __future__ import annotations

import os
from collections.abc import Callable

_JOURNAL = os.open(os.environ["SYNC_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _note_syncs(sync: Callable[[int], None]) -> Callable[[int], None]:
    def sync_and_note(fd: int) -> None:
        path, size_bytes = os.readlink(f"/proc/self/fd/{fd}"), os.fstat(fd).st_size
        sync(fd)
        os.write(_JOURNAL, f"{size_bytes} {path}\n".encode())

    return sync_and_note


for name in ("fsync", "fdatasync"):
    setattr(os, name, _note_syncs(getattr(os, name)))
