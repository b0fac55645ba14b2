"""The handlers of transactions over a real coordinator, a transactions topic and partitions in memory."""

from __future__ import annotations

from types import SimpleNamespace

from twisted.internet.defer import Deferred, succeed

from kafkacompat.metadata.image import ImageHolder
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from tests.handlers.coordinator_node import CoordinatorNode
from tests.handlers.node import make_services
from tests.kafkacompat.groups.support import TurningClock
from tests.kafkacompat.groups.support import World as GroupWorld
from tests.kafkacompat.transactions.support import World


class TransactionNode(CoordinatorNode):
    """Node 1 with the topics t and u of two partitions, and those of both coordinators of four."""

    def __init__(self, clock: TurningClock | None = None) -> None:
        self.world = World(clock=clock)
        self.groups = GroupWorld()
        self.making: Deferred[None] = succeed(None)
        self.world.coordinator.ensure_topic = lambda: self.making
        given = make_services(
            clock=self.world.clock,
            metadata=ImageHolder(),
            coordinators=SimpleNamespace(
                groups=self.groups.coordinator, transactions=self.world.coordinator, verifier=self.world.coordinator
            ),
        )
        super().__init__(given, t=2, u=2, __consumer_offsets=4, **{TRANSACTION_TOPIC: 4})
