"""The handlers of transactions with a real coordinator behind them, over a transactions topic and partitions in memory."""

from __future__ import annotations

from typing import Any, TypeVar

from twisted.internet.defer import Deferred, succeed

from kafkacompat.handlers import Handler
from kafkacompat.handlers.context import Peer, Pending, RequestContext, Services
from kafkacompat.metadata.image import BrokerImage, ImageHolder, MetadataImage, PartitionImage, TopicImage
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.wire import compiler
from kafkacompat.wire.schema import Request, Response
from tests.kafkacompat.groups.support import World as GroupWorld
from tests.kafkacompat.transactions.support import World, now

Answer = TypeVar("Answer", bound=Response)
ABSENT: Any = None

NODE = 1


def topic(name: str, partitions: int) -> TopicImage:
    """A topic that this node leads."""
    led = (PartitionImage(number, NODE, 0, (NODE,), (NODE,), 0) for number in range(partitions))
    return TopicImage(name, name.encode().ljust(16)[:16], tuple(led))


class TransactionNode:
    """Node 1 with the topics t and u of two partitions, and those of both coordinators of four.

    ``holds_next``: the next request of the connection waits for the last answer.
    """

    def __init__(self) -> None:
        self.world = World()
        self.groups = GroupWorld()
        self.holder = ImageHolder()
        self.set_topics(t=2, u=2, __consumer_offsets=4, **{TRANSACTION_TOPIC: 4})
        self.making: Deferred[None] = succeed(None)
        self.holds_next = False
        self.world.coordinator.ensure_topic = lambda: self.making
        self._services = Services(
            node_id=NODE,
            clock=self.world.clock,
            config=ABSENT,
            metadata=self.holder,
            controller=ABSENT,
            replica_manager=ABSENT,
            fetch_sessions=ABSENT,
            group_coordinator=self.groups.coordinator,
            stored_offsets=ABSENT,
            transactions=self.world.coordinator,
            conversions=ABSENT,
        )

    def set_topics(self, **partitions: int) -> None:
        """Let there be these topics and no others."""
        brokers = {NODE: BrokerImage(NODE, None, {"FIXED": ("broker.example", 9093)})}
        image = MetadataImage(brokers=brokers)
        self.holder.publish(image.with_topics({name: topic(name, count) for name, count in partitions.items()}))

    def send(self, request: Request, version: int) -> Response | Deferred[Response]:
        """What the handler gives back, once the request has been through the wire."""
        peer = Peer(listener_name="PLAINTEXT", host="10.1.1.1", port=5555, local_host="10.0.0.5", local_port=9092)
        context = RequestContext(api_version=version, client_id="cli", peer=peer)
        decoded = compiler.decode(type(request), compiler.encode(request, version), version)
        response = Handler(request.API_KEY, request.VERSIONS).handle(decoded, context, self._services)
        self.holds_next = isinstance(response, Pending) and response.in_order
        return response.response if isinstance(response, Pending) else response

    def ask(self, request: Request, answer: type[Answer], version: int) -> Answer:
        """The response as the client reads it."""
        return self.read(self.send(request, version), answer, version)

    def read(self, response: Response | Deferred[Response], answer: type[Answer], version: int) -> Answer:
        """A response that was sent, as the client reads it."""
        return compiler.decode(answer, compiler.encode(now(response), version), version)
