"""Which host and port a client is told for a broker."""

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


def address(broker: BrokerImage, connection: ConnectionEnd) -> tuple[str, int]:
    """The address of *broker* for the client at the other end of *connection*.

    That is what advertised.listeners says for the client's listener. Where it says nothing, or no host, it
    is the address that the client itself connected to: on a single node that one is reachable.
    """
    host, port = broker.endpoints.get(connection.listener_name, ("", connection.local_port))
    return host or connection.local_host.removeprefix(_IPV4_IN_IPV6), port
