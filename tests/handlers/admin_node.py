"""Handlers over a real controller and a store in memory."""

from __future__ import annotations

from random import Random
from typing import Any

from twisted.internet.task import Clock

from kafkacompat.config import BrokerConfig
from kafkacompat.handlers.context import Pending
from kafkacompat.metadata.controller import Controller
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.features import TRANSACTION_VERSION
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.partitions.directories import Directories
from kafkacompat.partitions.replica_manager import ReplicaManager
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.schema import Request
from tests.fakes.memory_store import MemoryStore
from tests.fakes.partition_events import RecordingEvents
from tests.handlers.node import Answer, context_of, handle_request, make_services, reread_response
from tests.kafkacompat.metadata.deferreds import outcome

ABSENT: Any = None


class AdminNode:
    """Node 1 with these *properties*, without services for data or groups and without log directories."""

    def __init__(self, **properties: str) -> None:
        given = {"node.id": "1", **{name.replace("_", "."): value for name, value in properties.items()}}
        self.store = MemoryStore()
        self.events = RecordingEvents()
        self.holder = ImageHolder()
        self.directories = Directories([])
        config = BrokerConfig(given)
        effective = EffectiveConfig(config)
        self.controller = Controller(self.store, self.holder, self.events, effective, config, Random(7))
        outcome(self.controller.load("cluster-1"))
        outcome(self.controller.start())
        self.services = make_services(
            clock=Clock(),
            config=config,
            metadata=self.holder,
            effective=effective,
            controller=self.controller,
            replica_manager=ReplicaManager(self.directories, ABSENT, Clock(), ABSENT),
            features={TRANSACTION_VERSION: 2},
        )

    def send(self, request: Request, version: int) -> Any:
        """Return the handler's result: a response, or a Pending."""
        return handle_request(request, context_of(version), self.services)

    def ask(self, request: Request, answer: type[Answer], version: int) -> Answer:
        """The response as the client reads it."""
        response = self.send(request, version)
        if isinstance(response, Pending):
            response = outcome(response.response)
        return reread_response(response, answer, version)

    def make_topic(self, name: str, partitions: int = 1) -> bytes:
        """Make a topic; return its id."""
        wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        response = self.ask(CreateTopicsRequest(topics=[wanted]), CreateTopicsResponse, 7)
        assert response.topics[0].error_code == 0, response
        return response.topics[0].topic_id
