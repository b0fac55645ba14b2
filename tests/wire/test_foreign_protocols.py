"""Clients of other protocols are recognized by their first bytes."""

from __future__ import annotations

import pytest

from kafkacompat.wire.foreign_protocols import describe_foreign_protocol
from kafkacompat.wire.frames import FrameError, FrameReader

KAFKAS_LIMIT = 104_857_600
"""The default of socket.request.max.bytes."""


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost:9092\r\n\r\n", "an HTTP request"),
        (b"POST /topics HTTP/1.1\r\n", "an HTTP request"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "an HTTP request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "security.protocol"),
        (b"\x16\x03\x03\x00\xf0\x01", "security.protocol"),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY protocol"),
        (b"\r\n\r\n\0\r\nQUIT\n", "PROXY protocol"),
        (b"SSH-2.0-OpenSSH_9.0\r\n", "SSH"),
        (b"\xff\xff\xff\xff", "a frame claims -1 bytes"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_foreign_client_is_named(sent: bytes, words: str, size: int) -> None:
    reader = FrameReader(KAFKAS_LIMIT)
    with pytest.raises(FrameError, match=words):
        for position in range(0, len(sent), size):
            reader.feed(sent[position : position + size])


def test_kafkas_own_bytes_are_not_taken_for_others() -> None:
    assert describe_foreign_protocol(b"\0\0\0\x20") is None
