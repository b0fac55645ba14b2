"""The group handlers with a real coordinator behind them, over an offsets topic in memory."""

from __future__ import annotations

from typing import Any, TypeVar

from twisted.internet.defer import Deferred, succeed

from kafkacompat.groups.stored_offsets import StoredOffsets
from kafkacompat.handlers import HANDLERS
from kafkacompat.handlers.context import Peer, Pending, RequestContext, Services
from kafkacompat.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from kafkacompat.wire import compiler
from kafkacompat.wire.schema import Request, Response
from tests.fakes.memory_store import MemoryStore
from tests.kafkacompat.groups.support import World, now

Answer = TypeVar("Answer", bound=Response)
ABSENT: Any = None

NODE = 1
TOPIC_IDS = {"t": b"t" * 16, "u": b"u" * 16, "__consumer_offsets": b"o" * 16}


def topic(name: str, partitions: int) -> TopicImage:
    """A topic that this node leads."""
    led = (PartitionImage(number, NODE, 0, (NODE,), (NODE,), 0) for number in range(partitions))
    return TopicImage(name, TOPIC_IDS[name], tuple(led))


class GroupNode:
    """Node 1 with the topics t and u of two partitions and, unless told otherwise, the offsets topic."""

    def __init__(self, *, has_offsets_topic: bool = True) -> None:
        self.world = World()
        self.holder = self.world.metadata
        self.store = MemoryStore()
        names = {"t": 2, "u": 2} | ({"__consumer_offsets": 4} if has_offsets_topic else {})
        self.set_topics(**names)
        self.making: Deferred[None] = succeed(None)
        self.world.coordinator.ensure_offsets_topic = lambda: self.making
        self._services = Services(
            node_id=NODE,
            clock=self.world.clock,
            config=ABSENT,
            metadata=self.holder,
            controller=ABSENT,
            replica_manager=ABSENT,
            fetch_sessions=ABSENT,
            group_coordinator=self.world.coordinator,
            stored_offsets=StoredOffsets(self.store, 4096),
            transactions=ABSENT,
            conversions=ABSENT,
        )

    def set_topics(self, **partitions: int) -> None:
        """Let there be these topics and no others."""
        brokers = {NODE: BrokerImage(NODE, None, {"FIXED": ("broker.example", 9093)})}
        image = MetadataImage(brokers=brokers)
        self.holder.publish(image.with_topics({name: topic(name, count) for name, count in partitions.items()}))

    def send(self, request: Request, version: int, listener: str = "PLAINTEXT") -> Response | Deferred[Response]:
        """What the handler gives back, once the request has been through the wire."""
        peer = Peer(listener_name=listener, host="10.1.1.1", port=5555, local_host="10.0.0.5", local_port=9092)
        context = RequestContext(api_version=version, client_id="cli", peer=peer)
        decoded = compiler.decode(type(request), compiler.encode(request, version), version)
        response = HANDLERS[request.API_KEY].handle(decoded, context, self._services)
        return response.response if isinstance(response, Pending) else response

    def ask(self, request: Request, answer: type[Answer], version: int, listener: str = "PLAINTEXT") -> Answer:
        """The response as the client reads it."""
        return self.read(self.send(request, version, listener), answer, version)

    def read(self, response: Response | Deferred[Response], answer: type[Answer], version: int) -> Answer:
        """A response that was sent, as the client reads it."""
        return compiler.decode(answer, compiler.encode(now(response), version), version)
