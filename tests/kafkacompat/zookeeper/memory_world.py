"""A memory ZooKeeper with its clock, as the contract wants it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.zookeeper.client import ZooKeeper
from kafkacompat.zookeeper.memory import MemoryZooKeeper
from kafkacompat.zookeeper.memory_client import MemoryClient
from tests.kafkacompat.metadata.deferreds import outcome

Result = TypeVar("Result")


class MemoryWorld:
    """Everything under way happens in `run` and `until`, without the passing of time."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.server = MemoryZooKeeper()

    def connect(self, chroot: str = "", session_timeout_seconds: float = 6) -> MemoryClient:
        client = self.server.connect(self.clock, chroot, session_timeout_seconds)
        self.run(client.start())
        return client

    def settle(self) -> None:
        """Let everything happen that is due now."""
        self.clock.advance(0)

    def run(self, deferred: Deferred[Result]) -> Result:
        self.settle()
        return outcome(deferred)

    def until(self, check: Callable[[], object]) -> None:
        self.settle()
        assert check()

    def expire(self, client: ZooKeeper) -> None:
        self.server.expire(cast(MemoryClient, client).session_id)
