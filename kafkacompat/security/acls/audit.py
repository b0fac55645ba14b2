"""The audit log: a file of JSON lines that records each refused operation, and by choice each allowed one.

Lines wait in memory for the disk's thread, so that no request waits for the disk. There are at most MOST_WAITING of them: beyond
that lines are left out, and a line tells their number. The broker serves on if the disk fails.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.security.acls.authorizer import Attempt, describe_attempt

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from kafkacompat.disk import Disk
    from kafkacompat.timers import Clock

log = logging.getLogger(__name__)

MOST_WAITING = 10_000
"""Lines in memory."""
FLUSH_S = 0.2
"""Time that a line may wait for others before it is written."""
MOST_CHARACTERS = 300
"""Characters of a name in a line."""
LINES_A_SECOND = 20
"""Refusals that the broker's own log tells of."""


class AuditFile(NamedTuple):
    """The file at ``path``; at ``max_bytes`` it becomes PATH.1, and PATH.1 becomes PATH.2. ``files`` of them are kept."""

    path: str
    max_bytes: int
    files: int

    def write(self, lines: list[str]) -> None:
        """Append lines; raises OSError [disk]."""
        data = "".join(lines).encode()
        if os.path.exists(self.path) and os.path.getsize(self.path) + len(data) > self.max_bytes:
            self._rotate()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            file.write(data)

    def _rotate(self) -> None:
        for number in range(self.files - 1, 0, -1):
            older = f"{self.path}.{number}"
            newer = f"{self.path}.{number - 1}" if number > 1 else self.path
            if os.path.exists(newer):
                os.replace(newer, older)


class AuditLog:
    """Writes attempts to a file, through the thread of a disk."""

    def __init__(self, file: AuditFile, disk: Disk, clock: Clock) -> None:
        self._file = file
        self._disk = disk
        self._clock = clock
        self._waiting: list[str] = []
        self._left_out = 0
        self._is_scheduled = False
        self._has_failed = False

    def add(self, attempt: Attempt) -> None:
        """Let an attempt be written."""
        if len(self._waiting) >= MOST_WAITING:
            self._left_out += 1
            return
        self._waiting.append(self._format(attempt))
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.callLater(FLUSH_S, self._flush)

    def _format(self, attempt: Attempt) -> str:
        return _format_line(
            self._clock,
            principal=_shorten(str(attempt.principal)),
            host=attempt.host,
            listener=attempt.listener,
            api=attempt.api,
            operation=attempt.operation.name,
            resource_type=attempt.resource_type.name,
            resource=_shorten(attempt.resource),
            allowed=attempt.decision.allowed,
        )

    def _flush(self) -> None:
        self.flush().addErrback(lambda failure: log.error("The audit log has failed", exc_info=failure.value))

    def flush(self) -> Deferred[None]:
        """Write what waits; fires when that is done, or has failed."""
        lines, self._waiting = self._waiting, []
        if self._left_out:
            lines.append(_format_line(self._clock, left_out=self._left_out))
            self._left_out = 0
        return self._disk.run(self._file.write, lines).addCallbacks(self._on_written, self._on_failed)

    def _on_written(self, _: None) -> None:
        if self._has_failed:
            log.info("The audit log %s is written again", self._file.path)
        self._has_failed = False
        self._go_on()

    def _on_failed(self, failure: Failure) -> None:
        if not self._has_failed:
            log.error("The audit log %s cannot be written, and its lines are lost: %s", self._file.path, failure.value)
        self._has_failed = True
        self._go_on()

    def _go_on(self) -> None:
        self._is_scheduled = bool(self._waiting or self._left_out)
        if self._is_scheduled:
            self._clock.callLater(FLUSH_S, self._flush)


def _format_line(clock: Clock, **fields: Any) -> str:
    time = datetime.fromtimestamp(clock.seconds(), timezone.utc).isoformat(timespec="milliseconds")
    return json.dumps({"time": time.replace("+00:00", "Z"), **fields}) + "\n"


def _shorten(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


class AttemptLog:
    """Logs refusals as Kafka's authorizer does, up to a bound, and passes all attempts to the audit log, if there is one."""

    def __init__(self, clock: Clock, audit: AuditLog | None) -> None:
        self._clock = clock
        self._audit = audit
        self._period_ends = 0.0
        self._lines = 0
        self._left_out = 0

    def note_allowed(self, attempt: Attempt) -> None:
        """See AttemptObserver."""
        if self._audit is not None:
            self._audit.add(attempt)

    def note_denied(self, attempt: Attempt) -> None:
        """See AttemptObserver."""
        if self._audit is not None:
            self._audit.add(attempt)
        now = self._clock.seconds()
        if now >= self._period_ends:
            self._lines, self._period_ends = 0, now + 1
        if self._lines < LINES_A_SECOND:
            self._lines += 1
            log.info("%s", _make_printable(describe_attempt(attempt)))
            return
        if not self._left_out:
            self._clock.callLater(self._period_ends - now, self._report_left_out)
        self._left_out += 1

    def _report_left_out(self) -> None:
        log.info("Left out %d more refusals in a second", self._left_out)
        self._left_out = 0


def _make_printable(text: str) -> str:
    """Return a text that fits in a line: clients choose the names in it."""
    printable = "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in text)
    return printable if len(printable) <= 5 * MOST_CHARACTERS else f"{printable[: 5 * MOST_CHARACTERS]}..."
