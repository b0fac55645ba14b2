"""A host whose disks and worker processes a clock of tests waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkacompat.adjustable_reactor import Operations
    from kafkacompat.disk import OwnedDisk
    from kafkacompat.host import Host
    from kafkacompat.workers.processes import Workers


class WatchedHost:
    """Passes everything to *host*, and each new disk and pool of workers to *watch*; see `AdjustableReactor.watch`."""

    def __init__(self, host: Host, watch: Callable[[Operations], None]) -> None:
        self._host = host
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        """Return the host's attribute."""
        return getattr(self._host, name)

    def new_disk(self, name: str) -> OwnedDisk:
        """See Host."""
        disk = self._host.new_disk(name)
        self._watch(disk)
        return disk

    def new_workers(self, count: int, name: str, *, timeout_s: float | None = None) -> Workers:
        """See Host."""
        workers = self._host.new_workers(count, name, timeout_s=timeout_s)
        self._watch(workers)
        return workers
