"""The address that a client receives for a broker."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kafkacompat.metadata.advertised import find_advertised_address
from kafkacompat.metadata.image import BrokerImage


class End(NamedTuple):
    listener_name: str
    local_host: str
    local_port: int


@pytest.mark.parametrize(
    ("endpoints", "end", "address"),
    [
        ({}, End("PLAINTEXT", "10.0.0.5", 9092), ("10.0.0.5", 9092)),
        ({}, End("PLAINTEXT", "::ffff:10.0.0.5", 9092), ("10.0.0.5", 9092)),
        ({}, End("PLAINTEXT", "fe80::1", 9092), ("fe80::1", 9092)),
        ({"PLAINTEXT": ("kafka", 19092)}, End("PLAINTEXT", "10.0.0.5", 9092), ("kafka", 19092)),
        ({"PLAINTEXT": ("", 19092)}, End("PLAINTEXT", "10.0.0.5", 9092), ("10.0.0.5", 19092)),
        ({"OUTSIDE": ("kafka", 19092)}, End("INSIDE", "10.0.0.5", 9093), ("10.0.0.5", 9093)),
    ],
)
def test_address(endpoints: dict[str, tuple[str, int]], end: End, address: tuple[str, int]) -> None:
    assert find_advertised_address(BrokerImage(1, None, endpoints), end) == address
