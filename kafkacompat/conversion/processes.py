"""Worker processes for conversions: few, started when first needed, ended when nothing was to do for a while."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.timers import DelayedCall

log = logging.getLogger(__name__)

IDLE_SECONDS = 60

Call = Callable[..., Any]
"""call(name of a function of `child.FUNCTIONS`, *arguments) -> its result; raises what it raised."""
Work = Callable[[Call], Any]
"""Something to do in a thread that may wait, with processes at hand."""


class Workers(Protocol):
    """Somebody who does works beside the reactor thread, some at a time, in their order."""

    def run(self, work: Work) -> Deferred[Any]:
        """Do it, and fire with its result or fail with what it raised. Not to be cancelled."""

    def close(self) -> None:
        """Stop at once: what is under way fails."""


class ProcessWorkers:
    """Up to ``count`` threads, each with a process that computes for it when called; ``reactor`` is Twisted's.

    A process that dies fails the call it is used for with UNKNOWN_SERVER_ERROR, and so does one that cannot be started; the
    next call gets a new one.
    """

    def __init__(self, reactor: Any, count: int) -> None:
        self._reactor = reactor
        self._executor = ThreadPoolExecutor(max_workers=count, thread_name_prefix="conversion")
        self._lock = Lock()
        self._free: list[_Process] = []
        self._all: set[_Process] = set()
        self._closed = False
        self._idle: DelayedCall | None = None

    def run(self, work: Work) -> Deferred[Any]:
        """See Workers.run."""
        if self._closed:
            return fail(stopped())
        result: Deferred[Any] = Deferred()
        self._executor.submit(self._do, work, result)
        return result

    def _do(self, work: Work, result: Deferred[Any]) -> None:
        """In a thread."""
        finish: Callable[[Any], None] = result.callback
        try:
            outcome = work(self._call)
        except BaseException:
            finish, outcome = result.errback, Failure()
        self._reactor.callFromThread(self._finish, finish, outcome)

    def _call(self, name: str, *arguments: Any) -> Any:
        """See Call. Takes a process for it and gives it back."""
        try:
            process = self._take()
        except OSError as problem:
            log.error("no process to convert records can be started: %s", problem)
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "no process that converts records can be started"
            ) from None
        try:
            return process.call(name, *arguments)
        except _DiedError as problem:
            if self._closed:
                raise stopped() from None
            log.error("%s", problem)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the process that converts records died") from problem
        finally:
            self._give_back(process)

    def _finish(self, finish: Callable[[Any], None], outcome: Any) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = None if self._closed else self._reactor.callLater(IDLE_SECONDS, self._end_idle)
        finish(outcome)

    def _take(self) -> _Process:
        with self._lock:
            if self._closed:
                raise stopped()
            while self._free:
                process = self._free.pop()
                if process.works:
                    return process
                self._all.discard(process)
                process.end()
            process = _Process()
            self._all.add(process)
            return process

    def _give_back(self, process: _Process) -> None:
        with self._lock:
            if process.works and not self._closed:
                self._free.append(process)
                return
            self._all.discard(process)
        process.end()

    def _end_idle(self) -> None:
        self._idle = None
        with self._lock:
            idle, self._free = self._free, []
            self._all.difference_update(idle)
        for process in idle:
            process.end()

    def close(self) -> None:
        """See Workers.close."""
        with self._lock:
            self._closed = True
            processes = list(self._all)
        for process in processes:
            process.kill()
        # What waits fails by itself, and has regions to release.
        self._executor.shutdown(wait=True)
        if self._idle is not None:
            self._idle.cancel()
        self._end_idle()


def command() -> list[str]:
    """What starts a process that imports what this one would: of the same installation, and nothing that lies where it was started."""
    isolated = ["-I"] if sys.flags.isolated else []
    start = "import sys; sys.path[:] = sys.argv[1:]; from kafkacompat.conversion.child import main; main()"
    return [sys.executable, *isolated, "-c", start, *sys.path]


def stopped() -> KafkaError:
    """What becomes of conversions that the broker does not wait for when it stops; clients ask again."""
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops")


class _DiedError(Exception):
    """A worker process has ended, or has to."""


class _Process:
    """One worker process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._in_step = True

    @property
    def works(self) -> bool:
        """Whether it is there, and the next that it says will answer the next call."""
        return self._in_step and self._process.poll() is None

    def call(self, name: str, *arguments: Any) -> Any:
        """See Call; raises _DiedError besides."""
        calls, results = self._process.stdin, self._process.stdout
        assert calls is not None
        assert results is not None
        try:
            pickle.dump((name, arguments), calls, pickle.HIGHEST_PROTOCOL)
            calls.flush()
            succeeded, result = pickle.load(results)
        except Exception as problem:
            # Whatever it was (memory may be short, too), what comes next could be the answer to this call.
            self._in_step = False
            raise _DiedError(f"the process {self._process.pid} that converts records died: {problem!r}") from None
        if not succeeded:
            raise result
        return result

    def kill(self) -> None:
        """Stop it whatever it is at; who waits for its result is told."""
        self._process.kill()

    def end(self) -> None:
        """Let it go, and wait until it has gone."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):  # what it did not take before it died
                stream.close()
        self._process.wait()
