"""The threads that wait for disks, one a log directory, so that the reactor never does.

What runs there is named in `storage/` as a *disk* operation. A directory's operations run one after
the other, in the order in which they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorFromThreads

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Item = TypeVar("Item")

HELPERS = 16
"""Threads that help one that has several files to sync: a disk, and a journal, is faster with all of them at once."""


class Disk(Protocol):
    """Something that runs functions which may wait for a disk."""

    def run(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Deferred[Result]:
        """Run *function* and fire with its result, or fail with what it raised."""

    def run_each(self, function: Callable[[Item], object], items: Sequence[Item]) -> Deferred[None]:
        """Run *function* for each item, several at the same time, and nothing else meanwhile.

        Fires when all are done. When one fails, fails with what it raised once nothing is under way any more; others may
        not have been done then.
        """


def do_nothing() -> None:
    """To be run on a disk: done when everything before it is."""


class OwnedDisk(Disk, Protocol):
    """A disk of one's own, to be closed in the end."""

    def close(self) -> None:
        """Take nothing more, and return when what was given is done."""


class DiskThread:
    """One thread for one log directory, with helpers of its own; its results come back to the reactor thread."""

    def __init__(self, reactor: IReactorFromThreads, name: str) -> None:
        self._reactor = reactor
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"disk {name}")
        self._helpers = ThreadPoolExecutor(max_workers=HELPERS, thread_name_prefix=f"disk helper {name}")

    def run(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Deferred[Result]:
        """See Disk.run."""
        result: Deferred[Result] = Deferred()

        def work() -> None:
            finish: Callable[[Any], None] = result.callback
            try:
                outcome: Any = function(*args, **kwargs)
            except BaseException:
                finish, outcome = result.errback, Failure()
            self._reactor.callFromThread(finish, outcome)

        self._executor.submit(work)
        return result

    def run_each(self, function: Callable[[Item], object], items: Sequence[Item]) -> Deferred[None]:
        """See Disk.run_each."""
        return self.run(self._each, function, items)

    def _each(self, function: Callable[[Item], object], items: Sequence[Item]) -> None:
        shares = [items[number::HELPERS] for number in range(min(HELPERS, len(items)))]
        if len(shares) == 1:
            _one_by_one(function, items)
            return
        running = [self._helpers.submit(_one_by_one, function, share) for share in shares]
        wait(running)
        for each in running:
            each.result()

    def close(self) -> None:
        """See OwnedDisk.close."""
        self._executor.shutdown(wait=True)
        self._helpers.shutdown(wait=True)


def _one_by_one(function: Callable[[Item], object], items: Sequence[Item]) -> None:
    for item in items:
        function(item)
