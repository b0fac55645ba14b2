"""Worker processes: few, started when first needed, ended when nothing was to do for a while."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.workers.child import END, PROBLEM, STREAM

if TYPE_CHECKING:
    from kafkacompat.timers import DelayedCall

log = logging.getLogger(__name__)

IDLE_SECONDS = 60

Call = Callable[..., Any]
"""call(name of a function of `child.FUNCTIONS`, *arguments) -> its result; raises what it raised.

Of a function that gives an iterator the result is an iterator with a process of its own: each item is computed when it
is asked for, in whatever thread. `close` is to be called in the end; before the last item it ends the process.
"""
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

    ``name`` says what they are for. A process that dies fails the call it is used for with UNKNOWN_SERVER_ERROR, and so does one that cannot be started; the
    next call gets a new one.
    """

    def __init__(self, reactor: Any, count: int, name: str) -> None:
        self._reactor = reactor
        self._name = name
        self._executor = ThreadPoolExecutor(max_workers=count, thread_name_prefix=name)
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
            log.error("no process for %s can be started: %s", self._name, problem)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no process for {self._name} can be started") from None
        stream = False
        try:
            stream, result = self._told(process.call, name, *arguments)
        finally:
            if not stream:
                self._give_back(process)
        return _Stream(self._told, self._give_back, process) if stream else result

    def _told(self, ask: Callable[..., tuple[bool, Any]], *arguments: Any) -> tuple[bool, Any]:
        """What a process says; that it died is an error for who asked."""
        try:
            return ask(*arguments)
        except _DiedError as problem:
            if self._closed:
                raise stopped() from None
            log.error("a process for %s died: %s", self._name, problem)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the process for {self._name} died") from problem

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
            self._idle = None
        # Also those whose iterators nobody asks for more.
        for process in processes:
            process.end()


def command() -> list[str]:
    """What starts a process that imports what this one would: of the same installation, and nothing that lies where it was started."""
    isolated = ["-I"] if sys.flags.isolated else []
    start = "import sys; sys.path[:] = sys.argv[1:]; from kafkacompat.workers.child import start; start()"
    return [sys.executable, *isolated, "-c", start, *sys.path]


def stopped() -> KafkaError:
    """What becomes of what the broker does not wait for when it stops; clients ask again."""
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops")


class _DiedError(Exception):
    """A worker process has ended, or has to."""


class _Process:
    """One worker process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.in_step = True

    @property
    def works(self) -> bool:
        """Whether it is there, and the next that it says will answer the next call."""
        return self.in_step and self._process.poll() is None

    def call(self, name: str, *arguments: Any) -> tuple[bool, Any]:
        """(whether it is an iterator, whose items `next` gives; else the result); raises _DiedError besides."""
        kind, result = self._ask(pickle.dumps((name, arguments), pickle.HIGHEST_PROTOCOL))
        return kind == STREAM, result

    def next(self) -> tuple[bool, Any]:
        """(whether the iterator has come to its end, its next item); raises _DiedError besides."""
        kind, item = self._ask(b"\n")
        return kind == END, item

    def _ask(self, question: bytes) -> tuple[int, Any]:
        calls, results = self._process.stdin, self._process.stdout
        assert calls is not None
        assert results is not None
        try:
            calls.write(question)
            calls.flush()
            kind, value = pickle.load(results)
        except Exception as problem:
            # Whatever it was (memory may be short, too), what comes next could be the answer to this call.
            self.in_step = False
            raise _DiedError(f"{self._process.pid}: {problem!r}") from None
        if kind == PROBLEM:
            raise value
        return kind, value

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


class _Stream(Iterator[Any]):
    """The items that a process computes one by one; it is given back behind the last of them."""

    def __init__(
        self,
        told: Callable[[Callable[[], tuple[bool, Any]]], tuple[bool, Any]],
        give_back: Callable[[_Process], None],
        process: _Process,
    ) -> None:
        self._told = told
        self._give_back = give_back
        self._process: _Process | None = process

    def __next__(self) -> Any:
        if self._process is None:
            raise StopIteration
        ended = True
        try:
            ended, item = self._told(self._process.next)
        finally:
            if ended:
                self._end()
        if ended:
            raise StopIteration
        return item

    def close(self) -> None:
        """Ask for no more: a process that would go on computing for nobody is of no use."""
        if self._process is not None:
            self._process.in_step = False
            self._end()

    def _end(self) -> None:
        assert self._process is not None
        self._give_back(self._process)
        self._process = None
