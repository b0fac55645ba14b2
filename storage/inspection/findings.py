"""What a check of a data directory finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that is not as it should be, in a file or folder.

    A ``note`` costs nothing: it says what the next start puts in order by itself. ``position`` is a byte of the file, the offsets are those
    that are affected, the last one -1 where it is not known; all are -1 where they mean nothing.
    """

    path: str
    what: str
    note: bool = False
    position: int = -1
    first_offset: int = -1
    last_offset: int = -1


Report = Callable[[Finding], None]
"""Takes findings as they are made."""

Progress = Callable[[int], None]
"""Takes how many more bytes were read."""


class Unreadable(NamedTuple):
    """A file or folder that the system would not let anybody read."""

    path: str
    error: OSError
