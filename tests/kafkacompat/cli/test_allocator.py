"""What a request freed is there for the next one, without asking the kernel again."""

from __future__ import annotations

import platform
import subprocess
import sys
from textwrap import dedent

import pytest

REQUESTS = 200
# A process of its own each: the limits hold for all of a process.
PROGRAM = """
    import resource
    {before}

    def request():
        read = [bytes(256 * 1024) for _ in range(2)]
        frame = bytearray().join(read)
        return len(b"".join((frame, b"padding")))

    def faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    for _ in range(10):
        request()
    begin = faults()
    for _ in range({requests}):
        request()
    print(faults() - begin)
"""


def page_faults(before: str) -> int:
    """The page faults of so many requests in a process that did *before* at its start."""
    program = dedent(PROGRAM).format(before=before, requests=REQUESTS)
    return int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's limits")
def test_requests_find_their_memory_in_place() -> None:
    keeping = "from kafkacompat.cli.allocator import keep_freed_memory\nassert keep_freed_memory()"
    assert page_faults("") > 50 * REQUESTS
    assert page_faults(keeping) < REQUESTS
