"""Where other brokers are, and how this broker connects to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kafkacompat.security.sasl.client import Login
from kafkacompat.wire.client_connection import VersionCap

MAX_FRAME_BYTES = 0x7FFFFFFF


class BrokerAddress(NamedTuple):
    """A broker and the address of its listener for other brokers."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"broker {self.node_id} at {host}:{self.port}"


@dataclass(frozen=True)
class ConnectionSettings:
    """What all connections to other brokers share.

    ``setup_timeout_s`` bounds connecting and the exchange of versions (Kafka's ``socket.connection.setup.timeout.ms``). The
    back-off grows from ``reconnect_backoff_s`` to ``max_reconnect_backoff_s`` (``reconnect.backoff.ms`` and
    ``reconnect.backoff.max.ms``). A larger response than ``max_frame_bytes`` ends the connection. ``cap`` returns the
    highest version of an API key that may be sent, by ``inter.broker.protocol.version``. ``login`` is this broker's login by
    SASL, None where the brokers' listener has none. ``listener_name`` is for messages.
    """

    client_id: str
    setup_timeout_s: float = 10.0
    reconnect_backoff_s: float = 0.05
    max_reconnect_backoff_s: float = 1.0
    max_frame_bytes: int = MAX_FRAME_BYTES
    cap: VersionCap = lambda _: None
    login: Login | None = None
    listener_name: str | None = None
