"""Loopback ports for the tests' brokers, so that two processes of one test run never choose the same port."""

from __future__ import annotations

import itertools
import os
import random
import socket
from collections.abc import Iterator

FIRST_PORT = 10_000
PORTS_A_WORKER = 2_000
MOST_WORKERS = 10


def free_port() -> int:
    """Return a free loopback port that this process has not returned lately.

    A test reserves a port seconds before its broker listens there, and a killed broker comes back on the same port.
    In between, another broker could take the port if all workers of pytest-xdist chose from the same ones.
    """
    return next(port for port in _PORTS if _is_free(port))


def ports_of(worker: str, start: int) -> Iterator[int]:
    """Return the ports of one worker in turn, for ever; *worker* is pytest-xdist's name for it: gw0, gw1, or none.

    All ports lie below the range from which the kernel takes the ports of outgoing connections. While a broker is
    down, no client's connection can therefore be given its port.
    """
    number = int(worker.removeprefix("gw") or 0) % MOST_WORKERS
    first = FIRST_PORT + number * PORTS_A_WORKER
    return (first + index % PORTS_A_WORKER for index in itertools.count(start))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


_PORTS = ports_of(os.environ.get("PYTEST_XDIST_WORKER", ""), random.randrange(PORTS_A_WORKER))
