"""Sets of IPv4 and IPv6 networks, and whether an address is in one of them."""

from __future__ import annotations

import socket
from bisect import bisect_right
from collections.abc import Iterable

from kafkacompat.config.properties import ConfigError

NOBODY = "none"
"""Stands for no network at all in a list of networks; an empty list allows every address."""
_IPV4_ADDRESSES = 1 << 32
_FIRST_IPV6 = 1 << 128
"""Where the numbers of IPv6 addresses begin: those of IPv4 addresses are lower."""
_MAPPED = bytes(10) + b"\xff\xff"
"""Begins an IPv6 address that stands for an IPv4 address."""


class Networks:
    """A set of networks as sorted intervals of numbers: a look-up is a binary search, whatever their number."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        for first, end in sorted(intervals):
            if self._ends and first <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._firsts.append(first)
                self._ends.append(end)

    def __contains__(self, address: str) -> bool:
        """Whether an address is in one of the networks; a text that is no address is in none."""
        packed = _pack_address(address.partition("%")[0])
        if packed is None:
            return False
        number = _find_number(packed)
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number < self._ends[at]


def parse_networks(option: str, entries: Iterable[str]) -> Networks | None:
    """Parse the networks of a property, such as 10.0.0.0/8, 2001:db8::/32 and 192.0.2.7; None allows every address.

    `NOBODY` alone allows no address. Raises ConfigError, which names the property and the bad entry.
    """
    texts = tuple(entries)
    if not texts:
        return None
    if texts == (NOBODY,):
        return Networks(())
    return Networks(_parse_network(option, text) for text in texts)


def _parse_network(option: str, text: str) -> tuple[int, int]:
    """Return the number of a network's first address, and the number after that of its last one."""
    address, slash, digits = text.partition("/")
    packed = _pack_address(address)
    if packed is None:
        raise _build_error(option, text, _EXPECTED)
    most_bits = len(packed) * 8
    bits = _BITS.get(digits, most_bits + 1) if slash else most_bits
    if bits > most_bits:
        raise _build_error(option, text, f"its prefix takes 0 to {most_bits} bits")
    size = 1 << (most_bits - bits)
    first = _find_number(packed)
    if first & (size - 1):
        advice = f"its address has bits beyond its prefix; write {_clear_bits(packed, size)}/{bits}"
        raise _build_error(option, text, advice)
    if first < _IPV4_ADDRESSES < first + size:
        raise _build_error(option, text, "it mixes IPv4 and IPv6; name a network of one of them")
    return first, first + size


_BITS = {str(bits): bits for bits in range(129)}
_EXPECTED = f"it takes networks such as 10.0.0.0/8 and 2001:db8::/32, single addresses, or {NOBODY} alone"


def _build_error(option: str, text: str, reason: str) -> ConfigError:
    return ConfigError(f"{option} is not valid at {text[:80]!r}: {reason}")


def _clear_bits(packed: bytes, size: int) -> str:
    number = int.from_bytes(packed, "big")
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, (number - number % size).to_bytes(len(packed), "big"))


def _pack_address(text: str) -> bytes | None:
    try:
        return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError):
        return None


def _find_number(packed: bytes) -> int:
    """Return the place of an address among all addresses; an IPv4 address in an IPv6 address counts as IPv4."""
    if len(packed) == 4:
        return int.from_bytes(packed, "big")
    if packed.startswith(_MAPPED):
        return int.from_bytes(packed[len(_MAPPED) :], "big")
    return _FIRST_IPV6 + int.from_bytes(packed, "big")
