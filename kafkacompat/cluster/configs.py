"""The configurations of the cluster as a broker follows them: read from ZooKeeper, and again when a notification names them.

Every change of /config is announced by a sequential znode /config/changes/config_change_N, which old tools with ``--zookeeper``
write too. Notifications stay for a while, so that a broker which was away for a moment sees them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.cluster.notifications import Notifications
from kafkacompat.metadata.codec import decode_image
from kafkacompat.metadata.store import StoreEntry, StoreError
from kafkacompat.metadata.znodes.configs import decode_config_change
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.zookeeper.client import WatchEvent, WatchKind, ZooKeeper

if TYPE_CHECKING:
    from kafkacompat.metadata.image import MetadataImage
    from kafkacompat.metadata.store import MetadataStore

log = logging.getLogger(__name__)

CHANGES = Znode.CONFIG_CHANGES.path()


class ClusterConfigs:
    """Keeps ``image``, whose configs and clients are those of ZooKeeper; ``on_changed`` is called after each change."""

    def __init__(self, zookeeper: ZooKeeper, store: MetadataStore, on_changed: Callable[[], None]) -> None:
        self._store = store
        self._on_changed = on_changed
        self._lock = DeferredLock()
        self._entries: dict[str, StoreEntry] = {}
        self._notifications = Notifications(zookeeper, CHANGES, self._on_notification)
        self._is_loaded = False
        self.image = decode_image({})

    def load(self) -> Deferred[None]:
        """Read all configurations, and watch for changes; raises StoreError and ZooKeeperError.

        The first time a damaged configuration is a StoreError. Later the last sound one stays in effect instead.
        """
        return self._lock.run(lambda: Deferred.fromCoroutine(self._load()))

    async def _load(self) -> None:
        # The watch first: a change in between is read twice rather than never.
        await self._notifications.begin()
        entries = await self._store.load()
        configs = {key: entry for key, entry in entries.items() if key.startswith("/config/")}
        self._entries = self._keep_sound(configs) if self._is_loaded else configs
        self._publish()
        self._is_loaded = True

    def _keep_sound(self, entries: Mapping[str, StoreEntry]) -> dict[str, StoreEntry]:
        """Return *entries* with the known value in place of a damaged one, and without those that were never sound."""
        sound: dict[str, StoreEntry] = {}
        for key, entry in entries.items():
            try:
                decode_image({key: entry})
                sound[key] = entry
            except StoreError as problem:
                log.error("A damaged configuration has no effect: %s", problem)
                if key in self._entries:
                    sound[key] = self._entries[key]
        return sound

    def read_topics(self, topics: Iterable[str]) -> Deferred[None]:
        """Read the configurations of topics that this broker is about to open."""
        keys = [Znode.CONFIG.path(kind="topics", name=topic) for topic in topics]
        return self._lock.run(lambda: Deferred.fromCoroutine(self._read(keys)))

    async def _read(self, keys: list[str]) -> None:
        entries = self._keep_sound(await self._store.read(keys))
        before = dict(self._entries)
        for key in keys:
            self._entries.pop(key, None)
        self._entries.update(entries)
        if self._entries != before:
            self._publish()

    def _publish(self) -> None:
        self.image = decode_image(self._entries)
        self._on_changed()

    def merge_into(self, image: MetadataImage) -> MetadataImage:
        """Return *image* with these configurations."""
        return replace(image, configs=self.image.configs, clients=self.image.clients)

    def _on_notification(self, event: WatchEvent) -> None:
        if event.kind is not WatchKind.LOST:
            following = self._lock.run(lambda: Deferred.fromCoroutine(self._follow()))
            following.addErrback(lambda failure: log.error("Cannot read changed configurations: %s", failure.value))

    async def _follow(self) -> None:
        # The controller removes the old ones.
        keys = await self._notifications.read_new(decode_config_change, removes_old=False)
        if keys:
            await self._read(list(dict.fromkeys(keys)))
