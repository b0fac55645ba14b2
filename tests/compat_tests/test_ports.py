"""Ports for the tests' brokers."""

from __future__ import annotations

import socket
from itertools import islice

from compat_tests.ports import MOST_WORKERS, PORTS_A_WORKER, free_port, ports_of

FIRST_PORT_OF_CONNECTIONS = 32_768


def test_no_two_workers_share_a_port() -> None:
    ports = [set(islice(ports_of(f"gw{number}", 7), PORTS_A_WORKER)) for number in range(MOST_WORKERS)]
    assert len(set().union(*ports)) == MOST_WORKERS * PORTS_A_WORKER
    assert max(set().union(*ports)) < FIRST_PORT_OF_CONNECTIONS


def test_a_port_comes_again_only_after_all_others() -> None:
    ports = list(islice(ports_of("", 1990), PORTS_A_WORKER + 1))
    assert len(set(ports)) == PORTS_A_WORKER
    assert ports[0] == ports[-1]


def test_a_port_in_use_is_passed_over() -> None:
    following = free_port() + 1
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", following))
        assert free_port() != following
