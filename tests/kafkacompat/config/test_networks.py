"""Sets of networks."""

from __future__ import annotations

import ipaddress
from random import Random

import pytest

from kafkacompat.config.networks import NOBODY, parse_networks
from kafkacompat.config.properties import ConfigError


def contains(entries: list[str], address: str) -> bool:
    networks = parse_networks("whitelist", entries)
    assert networks is not None
    return address in networks


@pytest.mark.parametrize(
    ("entries", "address", "expected"),
    [
        (["10.0.0.0/8"], "10.255.255.255", True),
        (["10.0.0.0/8"], "11.0.0.0", False),
        (["10.0.0.0/8"], "9.255.255.255", False),
        (["192.0.2.7"], "192.0.2.7", True),
        (["192.0.2.7"], "192.0.2.8", False),
        (["0.0.0.0/0"], "203.0.113.9", True),
        (["0.0.0.0/0"], "::1", False),
        (["::/0"], "2001:db8::1", True),
        (["::/0"], "10.0.0.1", False),
        (["::/0"], "::ffff:10.0.0.1", False),
        (["2001:db8::/32"], "2001:db8:ffff::1", True),
        (["2001:db8::/32"], "2001:db9::", False),
        (["fe80::/10"], "fe80::1%eth0", True),
        (["10.0.0.0/8"], "::ffff:10.1.2.3", True),
        (["::ffff:10.0.0.0/104"], "10.1.2.3", True),
        (["::ffff:0:0/96"], "10.1.2.3", True),
        (["255.255.255.255"], "255.255.255.255", True),
        (["255.255.255.255", "::/128"], "::", True),
        ([NOBODY], "10.0.0.1", False),
        (["0.0.0.0/0", "::/0"], "no address", False),
        (["0.0.0.0/0"], "", False),
    ],
)
def test_addresses(entries: list[str], address: str, expected: bool) -> None:
    assert contains(entries, address) == expected


def test_no_networks_allow_everybody() -> None:
    assert parse_networks("whitelist", []) is None


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("10.0.0.0/33", "its prefix takes 0 to 32 bits"),
        ("10.0.0.0/-1", "its prefix takes 0 to 32 bits"),
        ("10.0.0.0/", "its prefix takes 0 to 32 bits"),
        ("10.0.0.0/" + "9" * 5000, "its prefix takes 0 to 32 bits"),
        ("10.0.0.0/8/8", "its prefix takes 0 to 32 bits"),
        ("::/129", "its prefix takes 0 to 128 bits"),
        ("10.0.0.1/8", "write 10.0.0.0/8"),
        ("2001:db8::1/32", "write 2001:db8::/32"),
        ("::ffff:0:0/90", "it mixes IPv4 and IPv6"),
        ("010.0.0.1", "it takes networks such as 10.0.0.0/8"),
        ("10.0.0", "it takes networks such as 10.0.0.0/8"),
        ("shop.example", "it takes networks such as 10.0.0.0/8"),
        ("", "it takes networks such as 10.0.0.0/8"),
        ("10.0.0.1\0", "it takes networks such as 10.0.0.0/8"),
        (NOBODY, "or none alone"),
    ],
)
def test_bad_entries_are_named_in_one_sentence(entry: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_networks("whitelist", ["192.0.2.0/24", entry])
    text = str(refused.value)
    assert text.startswith("whitelist is not valid at ") and words in text
    assert len(text) < 250 and "\n" not in text


@pytest.mark.parametrize("family", [4, 6])
def test_the_look_up_agrees_with_the_standard_library(family: int) -> None:
    rng = Random(family)
    bits = 32 if family == 4 else 128
    make = ipaddress.IPv4Address if family == 4 else ipaddress.IPv6Address
    # Addresses and networks lie close together, so that networks overlap and touch.
    base = rng.getrandbits(bits) & ~0xFFF

    def draw() -> int:
        return base | rng.getrandbits(12)

    networks = [
        ipaddress.ip_network((make(draw()), rng.randrange(bits - 10, bits + 1)), strict=False) for _ in range(40)
    ]
    parsed = parse_networks("whitelist", map(str, networks))
    assert parsed is not None
    for _ in range(3000):
        address = make(draw())
        assert (str(address) in parsed) == any(address in network for network in networks), address
