"""The processes themselves: started in sessions of their own, watched by a thread each, with their logs in bounded files.

Each process writes its log file itself. So it goes on when its supervisor is killed, and a terminal's Ctrl-C reaches the
supervisor alone, which stops the processes in their order.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kafkacompat.cli.cluster.folder import ProcessIdentity, identify_process
from kafkacompat.cli.columns import escape_control_characters
from kafkacompat.storage.files.os_errors import describe_error

EXIT_NOT_STARTED = 127
"""Exit code that stands for a process that could not be started, as in a shell."""

SENTENCE_PREFIX = "kafkacompat: "
MAX_TAIL_BYTES, MAX_SENTENCE_CHARACTERS = 1 << 16, 1000
MAX_LOG_BYTES = 32 << 20
"""A log file of this size becomes the older one, whose name ends in .1, and begins anew."""

Running = subprocess.Popen[bytes]


class ProcessPlan(NamedTuple):
    """How one process is started.

    ``await_ready`` waits until it is ready; it returns the address, or None if the process ended. A process that prints no
    ready line writes its standard output to the log as well.
    """

    name: str
    command: list[str]
    folder: Path
    log: Path
    await_ready: Callable[[Running], str | None]
    prints_ready_line: bool = True


class ProcessExit(NamedTuple):
    """The end of a process: its code (below 0: a signal), and what it said last."""

    code: int
    sentence: str


class ProcessListener(Protocol):
    """What a launcher reports to, always in the reactor's thread."""

    def note_ready(self, name: str, address: str) -> None: ...
    def note_exit(self, name: str, end: ProcessExit) -> None: ...


class Launcher(Protocol):
    """Starts and ends processes by their names."""

    def start(self, name: str, listener: ProcessListener) -> ProcessIdentity | None: ...
    def terminate(self, name: str) -> None: ...
    def kill(self, name: str) -> None: ...
    def trim_logs(self) -> None: ...


class ProcessLauncher:
    """Starts real processes; ``call_in_reactor`` runs a function in the reactor's thread."""

    def __init__(
        self, plans: Mapping[str, ProcessPlan], call_in_reactor: Callable[..., Any], own_log: Path | None
    ) -> None:
        self._plans = dict(plans)
        self._call_in_reactor = call_in_reactor
        self._own_logs = [] if own_log is None else [own_log]
        self._running: dict[str, Running] = {}

    def add(self, plan: ProcessPlan) -> None:
        """Take a further process, which `start` starts."""
        self._plans[plan.name] = plan

    def start(self, name: str, listener: ProcessListener) -> ProcessIdentity | None:
        """Start a process; None if that failed, which the listener receives as an exit."""
        plan = self._plans[name]
        try:
            plan.folder.mkdir(parents=True, exist_ok=True)
            with plan.log.open("ab") as log:
                position = log.tell()
                process = subprocess.Popen(
                    plan.command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE if plan.prints_ready_line else log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as problem:
            self._call_in_reactor(listener.note_exit, name, ProcessExit(EXIT_NOT_STARTED, describe_error(problem)))
            return None
        self._running[name] = process
        threading.Thread(target=self._watch, args=(plan, process, position, listener), daemon=True).start()
        return identify_process(process.pid)

    def terminate(self, name: str) -> None:
        """Send SIGTERM, unless the process has ended."""
        self._send(name, signal.SIGTERM)

    def kill(self, name: str) -> None:
        """Send SIGKILL, unless the process has ended."""
        self._send(name, signal.SIGKILL)

    def _send(self, name: str, number: signal.Signals) -> None:
        process = self._running.get(name)
        if process is not None:
            process.send_signal(number)

    def trim_logs(self) -> None:
        """Begin each log file anew that has become too large."""
        for log in (*self._own_logs, *(plan.log for plan in self._plans.values())):
            trim_log(log)

    def _watch(self, plan: ProcessPlan, process: Running, position: int, listener: ProcessListener) -> None:
        address = plan.await_ready(process)
        if address is not None:
            self._call_in_reactor(listener.note_ready, plan.name, address)
        code = process.wait()
        # Not before: a broker that prints into a closed pipe fails.
        if process.stdout is not None:
            process.stdout.close()
        # A process that a signal ended had no last words; the last line of its log says something else.
        sentence = "" if code < 0 else read_sentence(plan.log, position)
        self._call_in_reactor(listener.note_exit, plan.name, ProcessExit(code, sentence))


def await_ready_line(process: Running) -> str | None:
    """Wait for the ready line of `kafkacompat serve`; returns the first listener's HOST:PORT, or None if the process ended."""
    assert process.stdout is not None
    for line in process.stdout:
        words = line.decode(errors="replace").split()
        if words[:2] == ["kafkacompat", "ready"]:
            return words[2].rpartition("://")[2]
    return None


def read_sentence(log: Path, position: int) -> str:
    """Return what a process that ended wrote for its user after *position*: its last sentence, else its last line."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            # The file may have begun anew in the meantime.
            file.seek(max(position if position <= size else 0, size - MAX_TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    sentences = [line.removeprefix(SENTENCE_PREFIX) for line in lines if line.startswith(SENTENCE_PREFIX)]
    last = [*(line for line in lines if line.strip()), *sentences][-1:]
    return escape_control_characters(last[0][:MAX_SENTENCE_CHARACTERS].strip()) if last else ""


def trim_log(log: Path) -> None:
    """Copy a log file that is too large to the older one, and begin it anew; its process continues to append to it."""
    try:
        if log.stat().st_size < MAX_LOG_BYTES:
            return
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        with log.open("r+b") as file:
            file.truncate(0)
    except OSError:
        # Without room for the copy, the log grows on; the process has the same disk and will say so.
        return
