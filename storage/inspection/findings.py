"""The results of checking a data directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Finding(NamedTuple):
    """One fault of a file or folder.

    A `note` is harmless: the next start corrects it. `position` is a byte of the file. `first_offset` and `last_offset` are
    the affected offsets, the last one -1 if it is unknown; all are -1 if they do not apply.
    """

    path: str
    fault: str
    note: bool = False
    position: int = -1
    first_offset: int = -1
    last_offset: int = -1


ReportFinding = Callable[[Finding], None]
"""Receives findings as they are made."""

ReportProgress = Callable[[int], None]
"""Receives the number of bytes read since the last call."""


class UnreadablePath(NamedTuple):
    """A file or folder that could not be read."""

    path: str
    error: OSError
