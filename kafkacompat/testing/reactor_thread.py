"""The thread in which all brokers of a process run, with a reactor of its own.

The thread is a daemon and starts with the first broker. It installs no signal handlers and is not Twisted's global reactor,
which the tests may own. A forked child has no such thread: it starts another one for its own brokers.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

from kafkacompat.testing.errors import BrokerError

THREAD_NAME = "kafkacompat brokers"
RESOLVER_NAME = "kafkacompat resolver"
MOST_RESOLVERS = 4
EXIT_S = 2.0
"""Time that the end of the process waits for the thread."""


class ReactorThread:
    """A reactor that runs in a daemon thread. ``failure`` is what has ended it."""

    def __init__(self) -> None:
        # Twisted is imported with the first broker only.
        from kafkacompat.reactors import build_reactor
        from kafkacompat.testing.daemon_threads import DaemonThreadPool

        self.reactor: Any = build_reactor()
        # A name is resolved in a thread, which must not keep the process from ending.
        self.reactor.threadpool = DaemonThreadPool(0, MOST_RESOLVERS, RESOLVER_NAME)
        self.reactor.callWhenRunning(self.reactor.threadpool.start)
        # Twisted remembers one thread with a reactor for the process; it belongs to the tests.
        self.reactor._registerAsIOThread = False
        self.failure: BaseException | None = None
        self._process_id = os.getpid()
        self._calls: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._has_ended = False
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name=THREAD_NAME, daemon=True)
        self._thread.start()
        started.wait()

    @property
    def is_foreign(self) -> bool:
        """Whether the thread belongs to the parent of this process."""
        return self._process_id != os.getpid()

    @property
    def is_usable(self) -> bool:
        """Whether the thread runs in this process."""
        return not self.is_foreign and not self._has_ended

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run *function* in the thread and return its result; the call waits for a Deferred or a coroutine.

        Raises what the function raises, and BrokerError if the thread has ended or belongs to another process.
        """
        self._check()
        result: Future[Any] = Future()
        with self._lock:
            self._calls.add(result)
        self.reactor.callFromThread(self._begin, result, function, arguments)
        if self._has_ended:
            self._fail_calls()
        try:
            return result.result()
        finally:
            with self._lock:
                self._calls.discard(result)

    def stop(self) -> None:
        """End the thread of this process: the interpreter ends without a thread that still runs."""
        if self.is_usable:
            self.reactor.callFromThread(self.reactor.stop)
            self._thread.join(EXIT_S)

    def close_inherited(self) -> None:
        """Close the sockets of the parent's brokers in a forked child: they would keep the addresses bound."""
        for holder in {*self.reactor.getReaders(), *self.reactor.getWriters()}:
            inherited = getattr(holder, "socket", None)
            if inherited is not None:
                inherited.close()

    def _check(self) -> None:
        if self.is_foreign:
            raise BrokerError("this broker runs in the parent process: start one in this process, after the fork")
        if threading.current_thread() is self._thread:
            raise BrokerError("call() waits for the thread that it was called in: call the function itself there")
        if self._has_ended:
            raise self._build_error()

    def _begin(self, result: Future[Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        from twisted.internet.defer import Deferred

        try:
            outcome = function(*arguments)
            if inspect.iscoroutine(outcome):
                outcome = Deferred.fromCoroutine(outcome)
        except BaseException as problem:
            _fail(result, problem)
            return
        if isinstance(outcome, Deferred):
            outcome.addCallbacks(lambda value: _succeed(result, value), lambda failure: _fail(result, failure.value))
        else:
            _succeed(result, outcome)

    def _run(self, started: threading.Event) -> None:
        self.reactor.callWhenRunning(started.set)
        try:
            self.reactor.run(installSignalHandlers=False)
        except BaseException as problem:
            self.failure = problem
        finally:
            self._has_ended = True
            started.set()
            self._fail_calls()

    def _fail_calls(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, set()
        for call in calls:
            _fail(call, self._build_error())

    def describe_death(self) -> str | None:
        """Return why the thread has ended, one sentence; None while it runs."""
        if not self._has_ended:
            return None
        cause = "its reactor was stopped" if self.failure is None else f"{type(self.failure).__name__}: {self.failure}"
        return f"the thread of the brokers has ended: {cause}"

    def _build_error(self) -> BrokerError:
        error = BrokerError(self.describe_death())
        error.__cause__ = self.failure
        return error


def _succeed(result: Future[Any], outcome: Any) -> None:
    # The end of the thread and the end of the call may come at the same time.
    with contextlib.suppress(InvalidStateError):
        result.set_result(outcome)


def _fail(result: Future[Any], problem: BaseException) -> None:
    with contextlib.suppress(InvalidStateError):
        result.set_exception(problem)


_shared: ReactorThread | None = None
_starting = threading.Lock()


def get_reactor_thread() -> ReactorThread:
    """Return the thread of this process, started at the first use, or again after its end."""
    global _shared
    with _starting:
        if _shared is None:
            # Where the program configures no log, Python would print warnings: brokers of tests are killed on purpose.
            logging.getLogger("kafkacompat").addHandler(logging.NullHandler())
            atexit.register(_stop_shared)
            os.register_at_fork(after_in_child=_forget_parent)
        if _shared is None or not _shared.is_usable:
            _shared = ReactorThread()
        return _shared


def _stop_shared() -> None:
    if _shared is not None:
        _shared.stop()


def _forget_parent() -> None:
    """In a forked child: the thread exists in the parent only."""
    global _starting
    _starting = threading.Lock()
    if _shared is not None:
        _shared.close_inherited()


def describe_death() -> str | None:
    """Return why the thread of this process has ended; None while it runs, or if it never has."""
    return None if _shared is None else _shared.describe_death()
