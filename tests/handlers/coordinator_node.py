"""The common part of nodes with a real coordinator: topics that they lead, and answers that may come later."""

from __future__ import annotations

from typing import ClassVar

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, Services
from kafkacompat.metadata.image import BrokerImage, ImageHolder, MetadataImage, PartitionImage, TopicImage
from kafkacompat.wire.schema import Request, Response
from tests.handlers.node import NODE, Answer, context_of, handle_request, reread_response
from tests.kafkacompat.groups.support import take_response

TOPIC_IDS = {
    "t": b"t" * 16,
    "u": b"u" * 16,
    "__consumer_offsets": b"o" * 16,
    "__transaction_state": b"s" * 16,
}


def make_topic(name: str, partitions: int) -> TopicImage:
    """A topic that this node leads."""
    led = (PartitionImage(number, NODE, 0, (NODE,), (NODE,), 0) for number in range(partitions))
    return TopicImage(name, TOPIC_IDS[name], tuple(led))


class CoordinatorNode:
    """Node 1 with these services and topics, a number of partitions each.

    ``holds_next``: the next request of the connection waits for the last answer.
    """

    BROKERS: ClassVar = {NODE: BrokerImage(NODE, None, {"FIXED": ("broker.example", 9093)})}

    def __init__(self, services: Services, **partitions: int) -> None:
        self.holder: ImageHolder = services.metadata
        self.holds_next = False
        self._services = services
        self.set_topics(**partitions)

    def set_topics(self, **partitions: int) -> None:
        """Let there be these topics and no others."""
        image = MetadataImage(brokers=self.BROKERS)
        self.holder.publish(image.with_topics({name: make_topic(name, count) for name, count in partitions.items()}))

    def send(self, request: Request, version: int, listener: str = "PLAINTEXT") -> Response | Deferred[Response]:
        """Send a request through the wire format; return the handler's result."""
        response = handle_request(request, context_of(version, client_id="cli", listener=listener), self._services)
        self.holds_next = isinstance(response, Pending) and response.in_order
        return response.response if isinstance(response, Pending) else response

    def ask(self, request: Request, answer: type[Answer], version: int, listener: str = "PLAINTEXT") -> Answer:
        """The response as the client reads it."""
        return self.read(self.send(request, version, listener), answer, version)

    def read(self, response: Response | Deferred[Response], answer: type[Answer], version: int) -> Answer:
        """A response that was sent, as the client reads it."""
        return reread_response(take_response(response), answer, version)
