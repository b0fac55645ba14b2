"""Worker processes: few, started when first needed, ended when nothing was to do for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.workers.overdue import Overdue
from kafkacompat.workers.process import DiedError, Process
from kafkacompat.workers.sources import fingerprint, first_fingerprint

if TYPE_CHECKING:
    from kafkacompat.timers import DelayedCall

log = logging.getLogger(__name__)

Result = TypeVar("Result")

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
    next call gets a new one. One that takes ``timeout_s`` for an answer is killed, and the call fails so that clients ask
    again. Without a timeout is what nobody waits for: a disk may be slow for a while, and whoever always began anew would
    never be done; the broker's stop kills it, too.
    """

    def __init__(self, reactor: Any, count: int, name: str, *, timeout_s: float | None = None) -> None:
        self._reactor = reactor
        self._name = name
        self._timeout_s = timeout_s
        self._overdue = Overdue(reactor, timeout_s)
        self._fingerprint = first_fingerprint()
        self._told_replaced = False
        self._executor = ThreadPoolExecutor(max_workers=count, thread_name_prefix=name)
        self._lock = Lock()
        self._free: list[Process] = []
        self._all: set[Process] = set()
        self._closed = False
        self._idle: DelayedCall | None = None

    def run(self, work: Work) -> Deferred[Any]:
        """See Workers.run."""
        if self._closed:
            return fail(stopped())
        result: Deferred[Any] = Deferred()
        self._overdue.work_begins()
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
        stream = False
        process = self._take()
        try:
            stream, result = self._told(process, process.call, name, *arguments)
        finally:
            if not stream:
                self._give_back(process)
        return _Stream(self._told, self._give_back, process) if stream else result

    def _take(self) -> Process:
        try:
            return self._take_free() or self._start()
        except OSError as problem:
            log.error("no process for %s can be started: %s", self._name, problem)
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
                raise stopped()
            process = Process()
            self._all.add(process)
        try:
            self._told(process, process.begin)
            # Once more: its files may have been replaced while it imported them.
            self._check_sources()
            process.begun = True
        finally:
            if not process.begun:
                self._give_back(process)
        return process

    def _check_sources(self) -> None:
        """Refuse to let another code than the broker's own work for it."""
        if fingerprint() == self._fingerprint:
            return
        with self._lock:
            told, self._told_replaced = self._told_replaced, True
        if not told:
            log.error("the files of kafkacompat were replaced, and %s waits: restart the broker", self._name)
        raise ReplacedError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker's files were replaced: restart it")

    def _told(self, process: Process, ask: Callable[..., Result], *arguments: Any) -> Result:
        """What a process says; that it died is an error for who asked."""
        try:
            with self._overdue.owed_by(process):
                return ask(*arguments)
        except DiedError as problem:
            raise self._refusal(process, problem) from None

    def _refusal(self, process: Process, problem: DiedError) -> KafkaError:
        if self._closed:
            return stopped()
        if process.overdue:
            words = f"a process for {self._name} gave no answer for {self._timeout_s} seconds and was killed"
            log.error("%s", words)
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, words)
        log.error("a process for %s died: %s", self._name, problem)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the process for {self._name} died")

    def _finish(self, finish: Callable[[Any], None], outcome: Any) -> None:
        self._overdue.work_ended()
        if self._idle is not None:
            self._idle.cancel()
        self._idle = None if self._closed else self._reactor.callLater(IDLE_SECONDS, self._end_idle)
        finish(outcome)

    def _give_back(self, process: Process) -> None:
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
        # What waits fails by itself, and has regions to release.
        self._executor.shutdown(wait=True)
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        # Also those whose iterators nobody asks for more.
        for process in processes:
            process.end()


class ReplacedError(KafkaError):
    """The code on the disk is not the broker's any more; that was told. Clients ask again, until it was restarted."""


def stopped() -> KafkaError:
    """What becomes of what the broker does not wait for when it stops; clients ask again."""
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops")


class _Stream(Iterator[Any]):
    """The items that a process computes one by one; it is given back behind the last of them."""

    def __init__(
        self,
        told: Callable[[Process, Callable[[], tuple[bool, Any]]], tuple[bool, Any]],
        give_back: Callable[[Process], None],
        process: Process,
    ) -> None:
        self._told = told
        self._give_back = give_back
        self._process: Process | None = process

    def __next__(self) -> Any:
        if self._process is None:
            raise StopIteration
        ended = True
        try:
            ended, item = self._told(self._process, self._process.next)
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
