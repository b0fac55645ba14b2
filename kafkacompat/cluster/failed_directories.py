"""Reports of failed log directories: nodes below /log_dir_event_notification, by which the controller asks brokers for their replicas."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes.administration import decode_log_dir_event
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.zookeeper.client import NoNodeError, WatchEvent, WatchKind, ZooKeeper

if TYPE_CHECKING:
    from kafkacompat.cluster.controller_events import ControllerEvents

log = logging.getLogger(__name__)

LOG_DIR_EVENTS = Znode.LOG_DIR_EVENTS.path()


class FailedDirectories:
    """Watches the reports for one controller. *query* asks brokers for their replicas: the answers show which have failed."""

    def __init__(
        self,
        zookeeper: ZooKeeper,
        events: ControllerEvents,
        query: Callable[[Collection[int]], Coroutine[Deferred[Any], Any, object]],
    ) -> None:
        self._zookeeper = zookeeper
        self._events = events
        self._query = query

    async def begin(self) -> None:
        """Watch from now on; the reports until now are deleted, as a controller that starts asks every broker."""
        await self._delete(await self._list())

    def look_again(self) -> None:
        """Read again what the watches of a lost connection may have missed."""
        self._events.handle(self._query_reporters, "failed log directories")

    def _list(self) -> Deferred[list[str]]:
        return self._zookeeper.children(LOG_DIR_EVENTS, self._on_event)

    def _on_event(self, event: WatchEvent) -> None:
        if event.kind is not WatchKind.LOST:
            self.look_again()

    async def _query_reporters(self) -> None:
        names = await self._list()
        reporters = set()
        for name in sorted(names):
            path = f"{LOG_DIR_EVENTS}/{name}"
            try:
                value, _ = await self._zookeeper.get(path)
                reporters.add(decode_log_dir_event(path, value))
            except NoNodeError:
                continue
            except StoreError as problem:
                log.warning("Left out a report of a failed log directory: %s", problem)
        if reporters:
            await self._query(reporters)
        await self._delete(names)

    async def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(NoNodeError):
                await self._events.insist(partial(self._zookeeper.delete, f"{LOG_DIR_EVENTS}/{name}"))
