"""Taking over the partitions of a coordinator's topic, and resigning them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.internet.task import Cooperator
from twisted.python.failure import Failure

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.registry import Registry
from kafkacompat.coordination.replay import Replay
from kafkacompat.coordination.shard import Shard

log = logging.getLogger(__name__)


_Loader = TypeVar("_Loader", bound=Replay)


class Leadership(Generic[_Loader]):
    """Loads a partition when this broker is elected its leader, a bounded part in each turn of the reactor.

    ``new_loader`` creates the loader of a shard. ``loaded`` is called once the loader has read the partition and all of it is
    below the high watermark, unless this broker resigned the shard in the meantime.
    """

    def __init__(
        self,
        registry: Registry[Any],
        coordinator_log: CoordinatorLog,
        cooperator: Cooperator,
        new_loader: Callable[[Shard], _Loader],
        loaded: Callable[[Shard, _Loader], None],
    ) -> None:
        self._registry = registry
        self._log = coordinator_log
        self._cooperator = cooperator
        self._new_loader = new_loader
        self._on_loaded = loaded

    def load_shard(self, shard: Shard) -> Deferred[None]:
        """Load a shard; fires when it is ready.

        An empty partition is ready at once. A partition that this broker leads already keeps its shard: a later leader epoch of
        the same leader changes only the epoch, as the log and the loaded items remain.
        """
        led = self._registry.shards.get(shard.partition)
        if led is not None:
            led.leader_epoch = max(led.leader_epoch, shard.leader_epoch)
            return succeed(None)
        self._registry.shards[shard.partition] = shard
        loader = self._new_loader(shard)
        loading = maybeDeferred(self._load, loader.replay(self._log))
        loading.addCallback(lambda _: self._wait_until_committed(shard))
        return loading.addCallbacks(
            lambda _: self._take_over(shard, loader), lambda failure: self._on_load_failed(failure, shard, loader)
        )

    def _load(self, steps: Iterator[None]) -> Deferred[Iterator[None]]:
        for _ in steps:
            return self._cooperator.coiterate(steps)
        return succeed(steps)

    def _wait_until_committed(self, shard: Shard) -> Deferred[None]:
        """Wait until no other leader can lack what was loaded."""
        return self._log.wait_until_committed(shard.partition) if shard.is_active else succeed(None)

    def _take_over(self, shard: Shard, loader: _Loader) -> None:
        if not shard.is_active:
            loader.discard()
            return
        shard.is_loading = False
        self._on_loaded(shard, loader)

    def _on_load_failed(self, failure: Failure, shard: Shard, loader: _Loader) -> None:
        loader.discard()
        if not shard.is_active:
            log.info("%s-%d: another broker leads it before it was loaded", self._log.topic, shard.partition)
            return
        log.error("Failed to load %s-%d", self._log.topic, shard.partition, exc_info=failure.value)
        if self._registry.shards.get(shard.partition) is shard:
            del self._registry.shards[shard.partition]

    def resign_shard(self, partition: int) -> Shard | None:
        """Resign a partition. Returns its shard, for the coordinator to clear; None if this broker did not lead it."""
        shard = self._registry.shards.pop(partition, None)
        if shard is not None:
            shard.is_active = False
        return shard
