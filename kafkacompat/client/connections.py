"""The connections of this broker to others: one for each broker and purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.internet.defer import fail

from kafkacompat.client.channel import Channel
from kafkacompat.client.errors import RequestNotSentError

if TYPE_CHECKING:
    from random import Random

    from twisted.internet.defer import Deferred

    from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
    from kafkacompat.network import Network
    from kafkacompat.timers import Clock
    from kafkacompat.wire.schema import Request


class BrokerConnections:
    """Sends requests to other brokers.

    Each purpose has a connection of its own to each broker, so that a fetch that waits for data holds up nothing else. A
    connection is made at its first request and stays open.
    """

    def __init__(self, settings: ConnectionSettings, network: Network, clock: Clock, rng: Random) -> None:
        self._settings = settings
        self._network = network
        self._clock = clock
        self._rng = rng
        self._channels: dict[tuple[int, str], Channel] = {}
        self._is_closed = False

    def request(self, broker: BrokerAddress, purpose: str, request: Request, *, timeout_s: float) -> Deferred[Any]:
        """Send a request in the highest version that both brokers have, and fire with its response.

        Requests of one purpose are sent in order, without waiting for responses. The Deferred fails with a RequestFailedError, or
        with what the encoder raises for wrong values in the request. A request without a response after *timeout_s* closes the
        connection, so that all its other requests fail, too. Cancelling the Deferred takes back a request that was not sent yet,
        else it drops the response. If the broker has another address than before, its old connection is closed.
        """
        if self._is_closed:
            return fail(RequestNotSentError(f"{type(request).__name__} was not sent to {broker}: this broker stops"))
        key = (broker.node_id, purpose)
        channel = self._channels.get(key)
        if channel is not None and channel.address == broker:
            return channel.request(request, timeout_s)
        replacement = self._channels[key] = self._open_channel(broker)
        response = replacement.request(request, timeout_s)
        if channel is not None:
            channel.close(f"the address is now that of {broker}")
        return response

    def forget(self, node_id: int) -> None:
        """Close all connections to a broker; its requests fail."""
        keys = [key for key in self._channels if key[0] == node_id]
        for channel in [self._channels.pop(key) for key in keys]:
            channel.close("the broker has left the cluster")

    def close(self) -> None:
        """Close all connections; requests fail from now on."""
        self._is_closed = True
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close("this broker stops")

    def _open_channel(self, broker: BrokerAddress) -> Channel:
        return Channel(broker, self._settings, self._network, self._clock, self._rng)
