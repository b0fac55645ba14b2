"""kazoo's results, watch events and changes of state, brought into the reactor's thread.

kazoo talks to the server in a thread of its own. `ReactorHandler` takes the place of kazoo's other threads: everything crosses into
the reactor's thread there, in the order in which kazoo produced it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kazoo.handlers.threading import SequentialThreadingHandler

from kafkacompat.timers import Clock


class Reactor(Clock, Protocol):
    """The parts of a reactor that the client needs."""

    def callFromThread(self, callable: Callable[..., object], *args: Any) -> None:
        """Call a function in the reactor's thread."""


class KazooResult:
    """The result of a request of kazoo, as kazoo's methods expect it.

    kazoo sets it in any thread. The callbacks run in the reactor's thread, in the order in which the results were set.
    """

    def __init__(self, reactor: Reactor) -> None:
        self.value: Any = None
        self.exception: Exception | None = None
        self._reactor = reactor
        self._is_ready = False
        self._callbacks: list[Callable[[KazooResult], object]] = []

    def set(self, value: Any = None) -> None:
        """Set the value; may be called in any thread."""
        self.value = value
        self._reactor.callFromThread(self._call_back)

    def set_exception(self, exception: Exception) -> None:
        """Set the error; may be called in any thread."""
        self.exception = exception
        self._reactor.callFromThread(self._call_back)

    def get(self) -> Any:
        """Return the value or raise the error of a result that was set."""
        if self.exception is not None:
            raise self.exception
        return self.value

    def rawlink(self, callback: Callable[[KazooResult], object]) -> None:
        """Call *callback* with this result once it is set; called in the reactor's thread."""
        self._callbacks.append(callback)
        if self._is_ready:
            self._reactor.callFromThread(self._call_back)

    def _call_back(self) -> None:
        self._is_ready = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


class ReactorHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's handler for threads, without its threads for callbacks: the reactor's thread runs them.

    ``last_problem`` is the reason why the last attempt to connect failed.
    """

    name = "reactor_handler"
    running = True

    def __init__(self, reactor: Reactor) -> None:
        super().__init__()
        self.last_problem: Exception | None = None
        self._reactor = reactor

    def start(self) -> None:
        """Start nothing: there is no thread."""

    def stop(self) -> None:
        """Stop nothing."""

    def async_result(self) -> KazooResult:
        """Return the result of a request."""
        return KazooResult(self._reactor)

    def dispatch_callback(self, callback: Any) -> None:
        """Call a watch in the reactor's thread."""
        self._reactor.callFromThread(callback.func, *callback.args)

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """Connect to a server, in kazoo's thread."""
        try:
            return super().create_connection(*args, **kwargs)
        except Exception as problem:
            self.last_problem = problem
            raise
