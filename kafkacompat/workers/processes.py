"""A few worker processes, started when they are needed and ended when they have been idle for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.workers.overdue import AnswerTimeouts
from kafkacompat.workers.process import DiedError, Process
from kafkacompat.workers.sources import fingerprint_sources, first_fingerprint

if TYPE_CHECKING:
    from kafkacompat.timers import DelayedCall

log = logging.getLogger(__name__)

Result = TypeVar("Result")

IDLE_SECONDS = 60

Call = Callable[..., Any]
"""call(name of a function of `child.FUNCTIONS`, *arguments) -> its result; raises the function's exceptions.

If the function returns an iterator, the result is an iterator with a process of its own, which computes each item on demand.
Any thread may use it. The caller must `close` it; before the last item, this ends the process.
"""
Work = Callable[[Call], Any]
"""A function for a thread that may wait; it receives a `Call`."""


class Workers(Protocol):
    """Runs works beside the reactor thread, several at a time, in their order."""

    @property
    def pending(self) -> int:
        """How many works wait or run."""

    def run(self, work: Work) -> Deferred[Any]:
        """Run *work*; fires with its result or fails with its exception. Callers must not cancel it."""

    def close(self) -> None:
        """Stop at once: running works fail."""


class ProcessWorkers:
    """Up to ``count`` threads, each with a process that computes for it; ``reactor`` is Twisted's, ``name`` their purpose.

    If a process dies or cannot be started, its call fails with UNKNOWN_SERVER_ERROR, and the next call gets a new process. If a
    process takes longer than ``timeout_s`` for an answer, it is killed, and the call fails so that clients repeat their request.
    Work that no client waits for has no timeout: on a slow disk, work that always starts again would never end. `close` kills
    the processes too.
    """

    def __init__(self, reactor: Any, count: int, name: str, *, timeout_s: float | None = None) -> None:
        self._reactor = reactor
        self._name = name
        self._timeout_s = timeout_s
        self._overdue = AnswerTimeouts(reactor, timeout_s)
        self._fingerprint = first_fingerprint()
        self._has_logged_replacement = False
        self._executor = ThreadPoolExecutor(max_workers=count, thread_name_prefix=name)
        self._lock = Lock()
        self._free: list[Process] = []
        self._all: set[Process] = set()
        self._closed = False
        self._idle: DelayedCall | None = None

    @property
    def pending(self) -> int:
        """See Workers.pending."""
        return self._overdue.works

    def run(self, work: Work) -> Deferred[Any]:
        """See Workers.run."""
        if self._closed:
            return fail(build_stopped_error())
        result: Deferred[Any] = Deferred()
        self._overdue.begin_work()
        self._executor.submit(self._run_work, work, result)
        return result

    def _run_work(self, work: Work, result: Deferred[Any]) -> None:
        """Run work in a thread."""
        finish: Callable[[Any], None] = result.callback
        try:
            outcome = work(self._call)
        except BaseException:
            finish, outcome = result.errback, Failure()
        self._reactor.callFromThread(self._finish, finish, outcome)

    def _call(self, name: str, *arguments: Any) -> Any:
        """See Call. Takes a process and releases it after the call."""
        stream = False
        process = self._take()
        try:
            stream, result = self._wait_for(process, process.call, name, *arguments)
        finally:
            if not stream:
                self._release(process)
        return _ItemStream(self._wait_for, self._release, process) if stream else result

    def _take(self) -> Process:
        try:
            return self._take_free() or self._start()
        except OSError as problem:
            log.error("Cannot start a process for %s: %s", self._name, problem)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no process for {self._name} can be started") from None

    def _take_free(self) -> Process | None:
        with self._lock:
            while self._free:
                process = self._free.pop()
                if process.works:
                    return process
                self._all.discard(process)
                process.end()
        return None

    def _start(self) -> Process:
        self._check_sources()
        with self._lock:
            if self._closed:
                raise build_stopped_error()
            process = Process()
            self._all.add(process)
        try:
            self._wait_for(process, process.begin)
            # Check again: an upgrade may have replaced the files while the process imported them.
            self._check_sources()
            process.begun = True
        finally:
            if not process.begun:
                self._release(process)
        return process

    def _check_sources(self) -> None:
        """Raise CodeReplacedError when the files are no longer those of the broker's own code."""
        if fingerprint_sources() == self._fingerprint:
            return
        with self._lock:
            is_logged, self._has_logged_replacement = self._has_logged_replacement, True
        if not is_logged:
            log.error("Stopped %s, because the files of kafkacompat were replaced: restart the broker", self._name)
        raise CodeReplacedError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker's files were replaced: restart it")

    def _wait_for(self, process: Process, ask: Callable[..., Result], *arguments: Any) -> Result:
        """Wait for the answer of a process; its death becomes a KafkaError."""
        try:
            with self._overdue.expect_answer(process):
                return ask(*arguments)
        except DiedError as problem:
            raise self._describe_death(process, problem) from None

    def _describe_death(self, process: Process, problem: DiedError) -> KafkaError:
        if self._closed:
            return build_stopped_error()
        if process.overdue:
            words = f"a process for {self._name} that gave no answer for {self._timeout_s} s"
            log.error("Killed %s", words)
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the broker killed {words}")
        log.error("A process for %s died: %s", self._name, problem)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the process for {self._name} died")

    def _finish(self, finish: Callable[[Any], None], outcome: Any) -> None:
        self._overdue.end_work()
        if self._idle is not None:
            self._idle.cancel()
        self._idle = None if self._closed else self._reactor.callLater(IDLE_SECONDS, self._end_idle)
        finish(outcome)

    def _release(self, process: Process) -> None:
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
        self._overdue.stop()
        with self._lock:
            self._closed = True
            processes = list(self._all)
        for process in processes:
            process.kill()
        # Waiting works must run: they fail by themselves and release their regions.
        self._executor.shutdown(wait=True)
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        # This includes processes whose iterators were not read to the end.
        for process in processes:
            process.end()


class CodeReplacedError(KafkaError):
    """The code on the disk is no longer the broker's, which the log says; clients repeat requests until a restart."""


def build_stopped_error() -> KafkaError:
    """Build the error of work that a stopping broker does not finish; clients repeat their request."""
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops")


class _ItemStream(Iterator[Any]):
    """The items that a process computes one by one; the stream releases the process after the last item."""

    def __init__(
        self,
        wait_for: Callable[[Process, Callable[[], tuple[bool, Any]]], tuple[bool, Any]],
        release: Callable[[Process], None],
        process: Process,
    ) -> None:
        self._wait_for = wait_for
        self._release = release
        self._process: Process | None = process

    def __next__(self) -> Any:
        if self._process is None:
            raise StopIteration
        ended = True
        try:
            ended, item = self._wait_for(self._process, self._process.next)
        finally:
            if ended:
                self._end()
        if ended:
            raise StopIteration
        return item

    def close(self) -> None:
        """Stop reading; the process ends, because it would compute items that nobody reads."""
        if self._process is not None:
            self._process.in_step = False
            self._end()

    def _end(self) -> None:
        assert self._process is not None
        self._release(self._process)
        self._process = None
