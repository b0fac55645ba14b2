"""The network as the checks use it: names, connections, and a clock."""

from __future__ import annotations

import socket
import time
from threading import Event
from typing import Protocol


class Stream(Protocol):
    """A connection: a socket, or TLS over one. The errors are OSErrors."""

    def sendall(self, data: bytes, /) -> None:
        """Send bytes."""

    def recv(self, most_bytes: int, /) -> bytes:
        """Return received bytes, none at the end."""

    def close(self) -> None:
        """Close the connection."""


class DoctorNetwork(Protocol):
    """What the checks need of the operating system."""

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, in the order in which clients try them; raises OSError or UnicodeError."""

    def connect(self, address: str, port: int, timeout_s: float) -> socket.socket:
        """Connect to an address; each call on the socket waits for at most *timeout_s*. Raises OSError."""

    def now_s(self) -> float:
        """Return the time of day in seconds since 1970."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemNetwork:
    """The network of the operating system."""

    def resolve(self, host: str, port: int) -> list[str]:
        """See DoctorNetwork.resolve."""
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in entries))

    def connect(self, address: str, port: int, timeout_s: float) -> socket.socket:
        """See DoctorNetwork.connect."""
        connection = socket.create_connection((address, port), timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def now_s(self) -> float:
        """See DoctorNetwork.now_s."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """See DoctorNetwork.sleep."""
        Event().wait(seconds)
