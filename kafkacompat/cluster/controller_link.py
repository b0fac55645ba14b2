"""Requests to the controller, wherever it is: another broker, or this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from twisted.internet.defer import Deferred, fail

from kafkacompat.client.settings import BrokerAddress

if TYPE_CHECKING:
    from kafkacompat.client.connections import BrokerConnections
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.wire.schema import Request

PURPOSE = "controller"


class NoControllerError(Exception):
    """No controller is known, or it is not known where."""


AnswerLocally: TypeAlias = "Callable[[Request], Deferred[Any]]"


class BrokerRequests(Protocol):
    """Sends requests to other brokers."""

    def send(self, node_id: int, purpose: str, request: Request, timeout_s: float) -> Deferred[Any]:
        """Send a request to a broker; fails with RequestFailedError or NoBrokerError."""


class NoBrokerError(Exception):
    """A broker is not alive, as far as this one knows."""


class InterBrokerRequests:
    """Sends requests to brokers by their ids: their addresses on the inter-broker listener come from the image."""

    def __init__(self, connections: BrokerConnections, metadata: ImageHolder, listener: str) -> None:
        self._connections = connections
        self._metadata = metadata
        self._listener = listener

    def send(self, node_id: int, purpose: str, request: Request, timeout_s: float) -> Deferred[Any]:
        """See BrokerRequests."""
        broker = self._metadata.image.brokers.get(node_id)
        if broker is None or self._listener not in broker.endpoints:
            return fail(NoBrokerError(f"broker {node_id} is not alive"))
        address = BrokerAddress(node_id, *broker.endpoints[self._listener])
        return self._connections.request(address, purpose, request, timeout_s=timeout_s)


class ControllerLink:
    """Sends requests to the controller that *find_controller* names; *answer* answers those that are for this broker."""

    def __init__(
        self,
        node_id: int,
        find_controller: Callable[[], int],
        brokers: BrokerRequests,
        answer: AnswerLocally,
        purpose: str = PURPOSE,
    ) -> None:
        self._node_id = node_id
        self._find_controller = find_controller
        self._brokers = brokers
        self._answer = answer
        self._purpose = purpose

    @property
    def is_local(self) -> bool:
        """Whether this broker is the controller."""
        return self._find_controller() == self._node_id

    def send(self, request: Request, timeout_s: float) -> Deferred[Any]:
        """Send a request; fails with NoControllerError, NoBrokerError or RequestFailedError."""
        controller_id = self._find_controller()
        if controller_id < 0:
            return fail(NoControllerError("the cluster has no controller at the moment"))
        if controller_id == self._node_id:
            return self._answer(request)
        return self._brokers.send(controller_id, self._purpose, request, timeout_s)
