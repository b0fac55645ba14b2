"""The delegation tokens of the cluster as a broker follows them: read from ZooKeeper, and again when a notification names them.

Every change is announced by a sequential znode /delegation_token/token_changes/token_change_N, as by brokers of Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.cluster.notifications import Notifications
from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes.paths import TOKEN_PATHS, Znode
from kafkacompat.metadata.znodes.tokens import decode_token, decode_token_change
from kafkacompat.zookeeper.client import NodeExistsError, WatchEvent, WatchKind, ZooKeeper

if TYPE_CHECKING:
    from kafkacompat.metadata.store import MetadataStore
    from kafkacompat.security.tokens import TokenInfo

log = logging.getLogger(__name__)

TOKENS, CHANGES = Znode.TOKENS.path(), Znode.TOKEN_CHANGES.path()


class ClusterTokens:
    """Keeps ``tokens`` by id; ``on_changed`` is called after each change.

    Without ``delegation.token.secret.key`` no token is of use, and nothing is read.
    """

    def __init__(
        self, zookeeper: ZooKeeper, store: MetadataStore, is_enabled: bool, on_changed: Callable[[], None]
    ) -> None:
        self._zookeeper = zookeeper
        self._store = store
        self._is_enabled = is_enabled
        self._on_changed = on_changed
        self._lock = DeferredLock()
        self._notifications = Notifications(zookeeper, CHANGES, self._on_notification)
        self.tokens: Mapping[str, TokenInfo] = {}

    async def load(self) -> None:
        """Read all tokens, and watch for changes; raises StoreError and ZooKeeperError."""
        if self._is_enabled:
            await self._lock.run(lambda: Deferred.fromCoroutine(self._load()))

    async def _load(self) -> None:
        for path in TOKEN_PATHS:
            with suppress(NodeExistsError):
                await self._zookeeper.create(path, b"", make_path=True)
        # The watch first: a change in between is read twice rather than never.
        await self._notifications.begin()
        keys = await self._store.keys(f"{TOKENS}/")
        self.tokens = {}
        await self._read([key.removeprefix(f"{TOKENS}/") for key in keys])

    async def _read(self, token_ids: Sequence[str]) -> None:
        keys = {token_id: Znode.TOKEN.path(token_id=token_id) for token_id in token_ids}
        entries = await self._store.read([*keys.values()])
        tokens = {token_id: token for token_id, token in self.tokens.items() if token_id not in keys}
        for token_id, key in keys.items():
            if key in entries:
                try:
                    tokens[token_id] = decode_token(key, entries[key].value)
                except StoreError as problem:
                    log.error("A damaged delegation token has no effect: %s", problem)
        self.tokens = tokens
        self._on_changed()

    def _on_notification(self, event: WatchEvent) -> None:
        if event.kind is not WatchKind.LOST:
            following = self._lock.run(lambda: Deferred.fromCoroutine(self._follow()))
            following.addErrback(lambda failure: log.error("Cannot read changed tokens: %s", failure.value))

    async def _follow(self) -> None:
        token_ids = dict.fromkeys(await self._notifications.read_new(decode_token_change))
        if token_ids:
            await self._read([token_id for token_id in token_ids if token_id and "/" not in token_id])
