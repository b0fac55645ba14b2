"""Running processes: what Linux reports of them, and how a test suspends one."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from compat_tests.waiting import until

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """Return user plus system time of all threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid: int) -> int:
    """Return the resident set: every page of the process that is in memory now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def list_children(pid: int) -> list[int]:
    """Return the child processes of a process that it has not waited for."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread may end in between
            children += map(int, task.read_text().split())
    return children


def list_descendants(pid: int) -> list[int]:
    """Return the processes that a process, its children and so on have started, parents before their children."""
    children = list_children(pid)
    return children + [descendant for child in children for descendant in list_descendants(child)]


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie; one whose first thread alone has ended is alive."""
    try:
        return _state_of(Path(f"/proc/{pid}")) != "Z" or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def suspend_process(pid: int) -> None:
    """Send SIGSTOP to a process and return once all its threads stand still.

    Until then a thread that waits for input can still read what is sent to it.
    """

    def has_stopped() -> bool:
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread may end in between
            return all(_state_of(task) == "T" for task in Path(f"/proc/{pid}/task").iterdir())
        return False

    os.kill(pid, signal.SIGSTOP)
    until(has_stopped)


def _state_of(folder: Path) -> str:
    """Return the letter that /proc has for the state of a process or thread: R, S, D, T, Z."""
    return (folder / "stat").read_text().rpartition(")")[2].split()[0]
