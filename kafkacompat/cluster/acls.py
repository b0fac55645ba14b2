"""The access rules of the cluster as a broker follows them: read from ZooKeeper, and again when a notification names them.

Every change of rules is announced by a sequential znode below /kafka-acl-changes, or below /kafka-acl-extended-changes for prefixed
ones. Old tools with ``--authorizer-properties zookeeper.connect=`` write these too. Like Kafka's, each broker removes the
notifications that are older than a quarter of an hour.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.cluster.notifications import Notifications
from kafkacompat.metadata.codec import decode_image
from kafkacompat.metadata.store import StoreEntry, StoreError
from kafkacompat.metadata.znodes.paths import ACL_PATHS, Znode
from kafkacompat.metadata.znodes.security import decode_acl_change, parse_acl_key
from kafkacompat.security.acls.model import AclPattern
from kafkacompat.security.acls.table import NO_ACLS, NO_RULES, AclTable, RuleSet
from kafkacompat.zookeeper.client import NodeExistsError, WatchEvent, WatchKind, ZooKeeper

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.getLogger(__name__)

CHANGES = (Znode.ACL_CHANGES.path(), Znode.EXTENDED_ACL_CHANGES.path())


class AclStore(Protocol):
    """The part of a `ZooKeeperStore` that is read here."""

    def load_acls(self) -> Deferred[Mapping[str, StoreEntry]]:
        """Fire with the entries of all rules."""

    def read(self, keys: Sequence[str]) -> Deferred[Mapping[str, StoreEntry]]:
        """Fire with the entries of those keys that exist."""


class ClusterAcls:
    """Keeps ``table``, the rules in ZooKeeper; ``on_changed`` is called after each change."""

    def __init__(self, zookeeper: ZooKeeper, store: AclStore, on_changed: Callable[[], None]) -> None:
        self._zookeeper = zookeeper
        self._store = store
        self._on_changed = on_changed
        self._lock = DeferredLock()
        self._folders = [Notifications(zookeeper, folder, self._on_notification) for folder in CHANGES]
        self._is_loaded = False
        self.table = NO_ACLS

    def load(self) -> Deferred[None]:
        """Read all rules, and watch for changes; raises StoreError and ZooKeeperError.

        The first time damaged rules are a StoreError: without them a client might do what they deny. Later the last sound ones
        stay in effect instead.
        """
        return self._lock.run(lambda: Deferred.fromCoroutine(self._load()))

    async def _load(self) -> None:
        for path in ACL_PATHS:
            with suppress(NodeExistsError):
                await self._zookeeper.create(path, b"", make_path=True)
        # The watches first: a change in between is read twice rather than never.
        for folder in self._folders:
            await folder.begin()
        entries = await self._store.load_acls()
        self.table = AclTable(self._decode_sound(entries)) if self._is_loaded else decode_image(entries).acls
        self._is_loaded = True
        self._on_changed()

    def _decode_sound(self, entries: Mapping[str, StoreEntry]) -> dict[AclPattern, RuleSet]:
        """Return the rules of *entries*, with the known ones in place of those that are damaged."""
        rules: dict[AclPattern, RuleSet] = {}
        for key, entry in entries.items():
            pattern = parse_acl_key(key)
            if pattern is not None:
                try:
                    rules[pattern] = decode_image({key: entry}).acls.rules_of(pattern)
                except StoreError as problem:
                    log.error("Damaged access rules have no effect, the last sound ones stay: %s", problem)
                    rules[pattern] = self.table.rules_of(pattern)
        return rules

    def _on_notification(self, event: WatchEvent) -> None:
        if event.kind is not WatchKind.LOST:
            following = self._lock.run(lambda: Deferred.fromCoroutine(self._follow()))
            following.addErrback(lambda failure: log.error("Cannot read changed access rules: %s", failure.value))

    async def _follow(self) -> None:
        keys: dict[str, None] = {}
        for folder in self._folders:
            for change in await folder.read_new(decode_acl_change):
                keys.update(dict.fromkeys(change.keys))
        if keys:
            entries = await self._store.read(list(keys))
            gone = {pattern: NO_RULES for key in keys if (pattern := parse_acl_key(key)) is not None}
            self.table = self.table.replace({**gone, **self._decode_sound(entries)})
            self._on_changed()
