"""The threads that wait for disks, one for each log directory, so that the reactor never waits.

They run what `storage/` marks as a *disk* operation. A directory's operations run one after the other, in the order in
which they were requested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorFromThreads

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Item = TypeVar("Item")

HELPERS = 16
"""Threads that a directory's thread uses for several files: a disk, and a journal, syncs them faster all at once."""


class Disk(Protocol):
    """Runs functions that may wait for a disk."""

    def run(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Deferred[Result]:
        """Run *function* and fire with its result, or fail with what it raised."""

    def run_each(self, function: Callable[[Item], object], items: Sequence[Item]) -> Deferred[None]:
        """Run *function* for each item, several at the same time, and no other operation meanwhile.

        Fires when all are done. When one fails, the Deferred fails with its error once no call is under way; some items
        may not have been handled then.
        """


def do_nothing() -> None:
    """Do nothing: run on a disk, this ends when every operation before it has ended."""


class OwnedDisk(Disk, Protocol):
    """A disk that its user has to close."""

    @property
    def pending(self) -> int:
        """How many operations wait or run."""

    def close(self) -> None:
        """Accept no further operations, and return when all requested ones have ended."""


class DiskThread:
    """The thread of one log directory, with helper threads of its own; Deferreds fire in the reactor thread.

    The reactor thread counts the requested operations, the directory's thread those that have ended.
    """

    @property
    def pending(self) -> int:
        """See OwnedDisk.pending."""
        return self._requested - self._ended

    def __init__(self, reactor: IReactorFromThreads, name: str) -> None:
        self._reactor = reactor
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"disk {name}")
        self._helpers = ThreadPoolExecutor(max_workers=HELPERS, thread_name_prefix=f"disk helper {name}")
        self._requested = 0
        self._ended = 0

    def run(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Deferred[Result]:
        """See Disk.run."""
        result: Deferred[Result] = Deferred()
        self._requested += 1

        def work() -> None:
            finish: Callable[[Any], None] = result.callback
            try:
                outcome: Any = function(*args, **kwargs)
            except BaseException:
                finish, outcome = result.errback, Failure()
            self._ended += 1
            self._reactor.callFromThread(finish, outcome)

        self._executor.submit(work)
        return result

    def run_each(self, function: Callable[[Item], object], items: Sequence[Item]) -> Deferred[None]:
        """See Disk.run_each."""
        return self.run(self._share_out, function, items)

    def _share_out(self, function: Callable[[Item], object], items: Sequence[Item]) -> None:
        shares = [items[number::HELPERS] for number in range(min(HELPERS, len(items)))]
        if len(shares) == 1:
            _call_for_all(function, items)
            return
        running = [self._helpers.submit(_call_for_all, function, share) for share in shares]
        wait(running)
        for future in running:
            future.result()

    def close(self) -> None:
        """See OwnedDisk.close."""
        self._executor.shutdown(wait=True)
        self._helpers.shutdown(wait=True)


class DirectDisk:
    """An `OwnedDisk` that runs everything at once in the caller's thread: files in memory, or no reactor that must not wait."""

    pending = 0

    def run(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Deferred[Result]:
        """See Disk.run."""
        return maybeDeferred(function, *args, **kwargs)

    def run_each(self, function: Callable[[Item], object], items: Sequence[Item]) -> Deferred[None]:
        """See Disk.run_each."""
        return self.run(_call_for_all, function, items)

    def close(self) -> None:
        """See OwnedDisk.close."""


def _call_for_all(function: Callable[[Item], object], items: Sequence[Item]) -> None:
    for item in items:
        function(item)
