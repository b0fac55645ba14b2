"""The host and port that the broker returns to a client for a broker of the cluster."""

from __future__ import annotations

from typing import Protocol

from kafkacompat.metadata.image import BrokerImage

_IPV4_IN_IPV6 = "::ffff:"


class ConnectionEnd(Protocol):
    """This broker's end of a client's connection."""

    @property
    def listener_name(self) -> str: ...

    @property
    def local_host(self) -> str: ...

    @property
    def local_port(self) -> int: ...


def find_advertised_address(broker: BrokerImage, connection: ConnectionEnd) -> tuple[str, int]:
    """Return the address of *broker* for the client at the other end of *connection*.

    It is the entry of advertised.listeners for the client's listener. If the entry or its host is missing, it is the
    address that the client connected to: on a single node the client can reach that one.
    """
    host, port = broker.endpoints.get(connection.listener_name, ("", connection.local_port))
    return host or connection.local_host.removeprefix(_IPV4_IN_IPV6), port
