"""Free ports."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """Return a loopback port that no process has bound.

    It is below the range from which the kernel takes the ports of outgoing connections: while a broker is down, a client that
    tries to reach it must not get its port.
    """
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
