"""The group handlers over a real coordinator and an offsets topic in memory."""

from __future__ import annotations

from types import SimpleNamespace

from twisted.internet.defer import Deferred, succeed

from kafkacompat.groups.stored_offsets import StoredOffsets
from tests.fakes.memory_store import MemoryStore
from tests.handlers.coordinator_node import TOPIC_IDS, CoordinatorNode
from tests.handlers.node import make_services
from tests.kafkacompat.groups.support import World

__all__ = ["TOPIC_IDS", "GroupNode"]


class GroupNode(CoordinatorNode):
    """Node 1 with the topics t and u of two partitions and, unless told otherwise, the offsets topic."""

    def __init__(self, *, has_offsets_topic: bool = True) -> None:
        self.world = World()
        self.store = MemoryStore()
        self.making: Deferred[None] = succeed(None)
        self.world.coordinator.ensure_offsets_topic = lambda: self.making
        given = make_services(
            clock=self.world.clock,
            metadata=self.world.metadata,
            coordinators=SimpleNamespace(groups=self.world.coordinator, stored_offsets=StoredOffsets(self.store, 4096)),
        )
        super().__init__(given, t=2, u=2, **({"__consumer_offsets": 4} if has_offsets_topic else {}))
