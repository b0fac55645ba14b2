"""A process with process ids, mounts and a network of its own: the kernel ends and removes all of it with the process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from types import FrameType

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x20000000, 0x40000000
_PR_SET_PDEATHSIG = 1

_LIBC = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Give the calling thread namespaces of its own; raises OSError where that is not permitted."""
    if _LIBC.unshare(flags):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def enter(descriptor: int, kind: int) -> None:
    """Move the calling thread into the namespace of a descriptor; raises OSError."""
    if _LIBC.setns(descriptor, kind):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def run_isolated(main: Callable[[], int]) -> int:
    """Run *main* in a process of its own, and return its exit code; raises OSError where namespaces are not permitted.

    Whatever *main* started and mounted ends with it. SIGINT and SIGTERM are passed on to it, as KeyboardInterrupt.
    """
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    unshare(CLONE_NEWPID)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _run_and_exit(main)

    def forward(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        # The next child is no process of the namespace that has ended.
        enter(own, CLONE_NEWPID)
        os.close(own)
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_and_exit(main: Callable[[], int]) -> None:
    """Be the first process of the namespace: all others end when it does."""
    code = 1
    try:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # A terminal's Ctrl-C would arrive twice: from the terminal, and from the process that waits.
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        unshare(CLONE_NEWNS)
        for mount in (["--make-rprivate", "/"], ["-t", "proc", "proc", "/proc"]):
            subprocess.run(["mount", *mount], check=True)
        code = main()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
