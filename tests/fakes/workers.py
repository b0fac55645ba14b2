"""Workers without processes: their work is done in the test's, when it says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, fail

from kafkacompat.workers.child import import_function
from kafkacompat.workers.processes import build_stopped_error
from tests.fakes.disk import ManualDisk


class ManualWorkers:
    """Works when a disk does."""

    def __init__(self, disk: ManualDisk) -> None:
        self.disk = disk
        self.closed = False
        self.calls: list[str] = []

    @property
    def pending(self) -> int:
        """See Workers.pending."""
        return len(self.disk.waiting)

    def run(self, work: Callable[..., Any]) -> Deferred[Any]:
        """See Workers.run."""
        return fail(build_stopped_error()) if self.closed else self.disk.run(self._do, work)

    def _do(self, work: Callable[..., Any]) -> Any:
        if self.closed:
            raise build_stopped_error()
        return work(lambda *arguments: self.call(*arguments))

    def call(self, name: str, *arguments: Any) -> Any:
        """See Call."""
        self.calls.append(name)
        return import_function(name)(*arguments)

    def close(self) -> None:
        """See Workers.close."""
        self.closed = True
