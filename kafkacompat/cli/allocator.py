"""The amount of freed memory that the process keeps for the next request.

glibc returns the end of the heap to the kernel after a large request, and asks for it again at the next one. A request of 512 KiB
then costs about 200 page faults, which took as much CPU time as the rest of its work. This module fixes both limits that glibc
otherwise moves by itself (mallopt(3)), once for the process.
"""

from __future__ import annotations

import sys

# From glibc's malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3

KEPT_BYTES = 8 * 1024 * 1024
"""Most free bytes at the end of the heap."""
LARGE_BYTES = 4 * 1024 * 1024
"""A block of at least this size gets a mapping of its own, which glibc returns as soon as the block is freed."""


def keep_freed_memory() -> bool:
    """Set both limits; returns False for a C library without them, which stays unchanged."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_THRESHOLD, LARGE_BYTES) and mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
