"""How much freed memory the process keeps for the next request.

glibc gives the end of the heap back to the kernel when a large request is done, and asks for it again with the next one: a
request of 512 KiB then costs some 200 page faults, which took about as much CPU time as all else that is done for it. Both limits
that glibc moves by itself are set here (mallopt(3)), once for the process.
"""

from __future__ import annotations

import sys

# From glibc's malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3

KEPT_BYTES = 8 * 1024 * 1024
"""So much may lie free at the end of the heap."""
LARGE_BYTES = 4 * 1024 * 1024
"""A block of this size or more is mapped by itself, and given back as soon as it is freed."""


def keep_freed_memory() -> bool:
    """Set both limits; False where the C library is another one, which is then left as it is."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_THRESHOLD, LARGE_BYTES) and mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
