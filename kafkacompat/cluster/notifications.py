"""Folders in ZooKeeper in which each change is announced by a sequential znode, which stays for a while.

A broker that was away for a moment sees what it has missed. Notifications are removed after a quarter of an hour, as by Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from kafkacompat.metadata.store import StoreError
from kafkacompat.zookeeper.client import NoNodeError

if TYPE_CHECKING:
    from kafkacompat.zookeeper.client import Watch, ZooKeeper

log = logging.getLogger(__name__)

LIFETIME_MS = 15 * 60 * 1000

Value = TypeVar("Value")


class Notifications:
    """The notifications in one folder; *watch* is called when there are others. The methods raise ZooKeeperError."""

    def __init__(self, zookeeper: ZooKeeper, folder: str, watch: Watch) -> None:
        self._zookeeper = zookeeper
        self._folder = folder
        self._watch = watch
        self._seen: set[str] = set()

    async def begin(self) -> None:
        """Watch the folder; what it announces already counts as read."""
        self._seen = set(await self._zookeeper.children(self._folder, self._watch))

    async def read_new(self, decode: Callable[[str, bytes], Value], *, removes_old: bool = True) -> list[Value]:
        """Return what the new notifications say, by *decode* of path and value; those that raise StoreError are left out."""
        names = set(await self._zookeeper.children(self._folder, self._watch))
        new, old = sorted(names - self._seen), sorted(names & self._seen)
        values: list[Value] = []
        newest_ms = 0
        for name in new:
            path = f"{self._folder}/{name}"
            try:
                value, stat = await self._zookeeper.get(path)
                newest_ms = max(newest_ms, stat.ctime_ms)
                values.append(decode(path, value))
            except NoNodeError:
                continue
            except StoreError as problem:
                log.warning("Left out a notification: %s", problem)
        # What a lost connection has kept from being read is still new.
        self._seen = names
        if removes_old:
            await self._remove_old(old, newest_ms)
        return values

    async def _remove_old(self, names: Sequence[str], now_ms: int) -> None:
        """Remove the notifications, given in their order, that are too old at a time of ZooKeeper's clock."""
        for name in names:
            path = f"{self._folder}/{name}"
            stat = await self._zookeeper.exists(path)
            if stat is not None and now_ms - stat.ctime_ms <= LIFETIME_MS:
                return
            with suppress(NoNodeError):
                await self._zookeeper.delete(path)
