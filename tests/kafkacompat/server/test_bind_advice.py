"""What a user reads when a listener cannot be bound."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from kafkacompat.server.bind_advice import explain_bind_failure


def bind_failure(host: str, port: int) -> OSError:
    """The error of this machine for an address that it cannot bind."""
    with socket.socket() as listening, pytest.raises(OSError) as raised:
        listening.bind((host, port))
    return raised.value


def test_a_name_that_does_not_resolve() -> None:
    words = explain_bind_failure("no.such.host.invalid", 9092, socket.gaierror(socket.EAI_NONAME, "unknown"))
    assert words.startswith("cannot listen on no.such.host.invalid:9092: the name cannot be resolved")


def test_an_address_of_another_machine() -> None:
    assert "no such address" in explain_bind_failure("192.0.2.1", 9092, bind_failure("192.0.2.1", 9092))


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = explain_bind_failure("127.0.0.1", port, bind_failure("127.0.0.1", port))
    assert words == f"cannot listen on 127.0.0.1:{port}: another process listens there; stop it, or choose another port"


@pytest.mark.parametrize(
    ("host", "port", "number", "words"),
    [
        ("", 80, errno.EACCES, "0.0.0.0:80: only root may use this port; choose one of 1024 or more"),
        ("", 9092, errno.EACCES, "0.0.0.0:9092: this user has no permission"),
        ("::1", 9092, errno.EAFNOSUPPORT, "[::1]:9092: this machine does not support that kind of address"),
        ("::1", 9092, errno.ENOBUFS, os.strerror(errno.ENOBUFS)),
    ],
)
def test_the_advice_fits(host: str, port: int, number: int, words: str) -> None:
    assert words in explain_bind_failure(host, port, OSError(number, os.strerror(number)))
