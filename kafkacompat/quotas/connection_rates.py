"""How many connections a second are accepted: in all, on one listener, and from one address (KIP-612).

A connection beyond the rate of the broker or of its listener waits, and those after it wait for their turn. One beyond the rate of
its address is closed after a while instead. Delays of one connection are at most one window, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from kafkacompat.metadata.client_entities import ClientConfig, Entity
from kafkacompat.quotas.client_rates import LimitedRate, UseTable
from kafkacompat.quotas.limits import LEAST_LIMIT, build_address_limits
from kafkacompat.quotas.rates import QuotaWindows

UNLIMITED = 2**31 - 1


class ConnectionLimit(NamedTuple):
    """The connections a second that the properties allow: on the listener, and on all listeners together.

    The second is UNLIMITED for the listener of the brokers among themselves, if it is not the only one.
    """

    of_listener: int
    of_broker: int


class ConnectionAdmission(NamedTuple):
    """What happens to a new connection: after *delay_ms* it is served, or closed if its address makes too many."""

    delay_ms: int = 0
    closes: bool = False


ADMITTED = ConnectionAdmission()


class _Listener:
    """The rate of one listener, and the time at which the last connection that waits is served."""

    def __init__(self, rate: LimitedRate) -> None:
        self.rate = rate
        self.busy_until_ms = 0


class ConnectionRates:
    """Decides on new connections; ``find_limit`` returns the limits of a listener in effect at that moment."""

    def __init__(self, windows: QuotaWindows, find_limit: Callable[[str], ConnectionLimit]) -> None:
        self._windows = windows
        self._find_limit = find_limit
        self._broker = self._make_rate()
        self._listeners: dict[str, _Listener] = {}
        self._addresses = UseTable(self._make_rate)
        self._address_limits: dict[str | None, float] = {}

    def _make_rate(self) -> LimitedRate:
        return LimitedRate(self._windows, self._windows.length_ms)

    def update(self, clients: Mapping[Entity, ClientConfig]) -> None:
        """Take over the quotas of all addresses."""
        limits = build_address_limits(clients)
        self._address_limits = {None if name is None else normalize_address(name): limits[name] for name in limits}

    def admit(self, listener_name: str, address: str, now_ms: int) -> ConnectionAdmission:
        """Count a new connection, and return what happens to it."""
        limit = self._find_limit(listener_name)
        address_limit = self._find_address_limit(address) if self._address_limits else None
        if address_limit is not None and (throttle_ms := self._charge_address(address, address_limit, now_ms)):
            return ConnectionAdmission(throttle_ms, closes=True)
        if limit.of_listener >= UNLIMITED and limit.of_broker >= UNLIMITED:
            return ADMITTED
        return ConnectionAdmission(self._charge_listener(listener_name, limit, now_ms))

    def _find_address_limit(self, address: str) -> float | None:
        limits = self._address_limits
        return limits.get(normalize_address(address), limits.get(None))

    def _charge_address(self, address: str, limit: float, now_ms: int) -> int:
        rate = self._addresses.find((normalize_address(address),), max(limit, LEAST_LIMIT), now_ms)
        throttle_ms = rate.record(1, now_ms)
        if throttle_ms:
            # A connection that is not accepted does not count.
            rate.record_unchecked(-1, now_ms)
        return throttle_ms

    def _charge_listener(self, listener_name: str, limit: ConnectionLimit, now_ms: int) -> int:
        """Return the time until the connection's turn: the connections of a listener are served one after the other."""
        listener = self._listeners.setdefault(listener_name, _Listener(self._make_rate()))
        turn_ms = max(now_ms, listener.busy_until_ms)
        throttle_ms = 0
        for rate, most in ((self._broker, limit.of_broker), (listener.rate, limit.of_listener)):
            if most < UNLIMITED:
                rate.limit = max(most, LEAST_LIMIT)
                throttle_ms = max(throttle_ms, rate.record(1, turn_ms))
        listener.busy_until_ms = turn_ms + throttle_ms
        return listener.busy_until_ms - now_ms


def normalize_address(text: str) -> str:
    """Return one text for each address: without a zone, and an IPv4 address never in IPv6 form."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
