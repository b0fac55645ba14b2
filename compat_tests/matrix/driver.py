"""A client as a process of its own: it reads commands from standard input and answers in lines of JSON.

A command is one line of words:

- ``create TOPIC PARTITIONS``: make the topic, or ask for it so that the broker makes it;
- ``produce MODE TOPIC CODEC FIRST COUNT TIMESTAMP``: write records FIRST to FIRST + COUNT - 1 and wait until all
  are acknowledged; MODE is ``plain``, ``idempotent``, or ``aborted`` or ``committed`` for one transaction;
- ``consume ISOLATION TOPIC PARTITIONS COUNT``: read COUNT records from the beginning, without a group;
  ISOLATION is ``all`` or ``committed``;
- ``join TOPIC GROUP``: be a member of the group until ``leave``: commit the read records, leave, close.

An answer is any number of ``{"partition": ..., "offset": ..., "key": ..., "value": ..., "timestamp": ...,
"header": ...}`` and ``{"assigned": [partitions]}``, and at its end ``{"done": true}`` or ``{"error": "..."}``.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from compat_tests.matrix.records import Record

if TYPE_CHECKING:
    from typing_extensions import Self

ANSWER_SECONDS = 45.0
END_SECONDS = 5.0
SHOWN_OF_STDERR = 300


class ClientError(Exception):
    """The client failed, fell silent or ended; the text says which, in its own words where it has any."""


@dataclass(frozen=True)
class Launch:
    """How a client's program is started; the bootstrap address is added as the last argument."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Driver:
    """One running client program; used as a context it leaves nothing running."""

    def __init__(self, launch: Launch, bootstrap: str, stderr: Path) -> None:
        self.assigned: list[int] = []
        self.records: list[Record] = []
        self._stderr = stderr
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        with stderr.open("wb") as errors:
            self._process = subprocess.Popen(
                [*launch.command, bootstrap],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **launch.environment},
                start_new_session=True,
            )
        assert self._process.stdout is not None
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def ask(self, *words: object, seconds: float = ANSWER_SECONDS) -> list[Record]:
        """Send a command, wait for its end and return the records that the driver reported; raises ClientError."""
        self.records = []
        self.tell(*words)
        self.wait_for("its end", lambda: False, seconds=seconds)
        return self.records

    def tell(self, *words: object) -> None:
        """Give a command without waiting; raises ClientError when the program has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write((" ".join(map(str, words)) + "\n").encode())
            self._process.stdin.flush()
        except OSError:
            raise ClientError(self._last_words()) from None

    def wait_for(self, description: str, reached: Any, *, seconds: float = ANSWER_SECONDS) -> None:
        """Read the driver's events until ``reached()`` is true or its command is done; raises ClientError."""
        deadline = time.monotonic() + seconds
        while not reached():
            if self._take(description, deadline - time.monotonic(), seconds):
                return

    def hear(self, seconds: float) -> None:
        """Take the program's next event if it arrives within *seconds*."""
        with suppress(queue.Empty):
            self._note(self._events.get(timeout=seconds))

    def _take(self, description: str, left: float, seconds: float) -> bool:
        """Take the next event; return whether the command is done."""
        try:
            event = self._events.get(timeout=max(left, 0))
        except queue.Empty:
            raise ClientError(f"no answer in {seconds:.0f} s, waiting for {description}") from None
        return self._note(event)

    def _note(self, event: dict[str, Any] | None) -> bool:
        if event is None:
            self._events.put(None)
            raise ClientError(self._last_words())
        if "error" in event:
            raise ClientError(str(event["error"]))
        if "assigned" in event:
            self.assigned = event["assigned"]
        elif "offset" in event:
            self.records.append(Record(**event))
        return "done" in event

    def _listen(self, stdout: IO[bytes]) -> None:
        with suppress(ValueError, OSError):
            for line in stdout:
                with suppress(ValueError):
                    event = json.loads(line)
                    if isinstance(event, dict):
                        self._events.put(event)
        self._events.put(None)

    def _last_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        lines = self._stderr.read_text(errors="replace").strip().splitlines()
        words = lines[-1][:SHOWN_OF_STDERR] if lines else "it said nothing"
        return f"the program ended with code {self._process.returncode}: {words}"

    def end(self, seconds: float = END_SECONDS) -> None:
        """End the program and all it started, by force after *seconds*."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=seconds)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
