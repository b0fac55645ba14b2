"""A switch in user space: it forwards IPv4 packets between TUN devices, and delays, loses or drops them by rules.

A dropped packet leaves silence, as a real partition does: no connection is reset.
"""

from __future__ import annotations

import heapq
import itertools
import os
import selectors
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import NamedTuple

DESTINATION = 19
"""Position of the last byte of the destination in an IPv4 header; in a network of /24 it is the host's number."""

LARGEST_PACKET_BYTES = 65_536
PACKETS_A_TURN = 64

Link = tuple[int, int]
"""The numbers of the sending and the receiving host."""


class LinkRule(NamedTuple):
    """The state of one direction between two hosts; a lost share of 1 is a cut."""

    delay_s: float = 0.0
    lost_share: float = 0.0


CUT = LinkRule(lost_share=1.0)


class Switch:
    """Forwards between devices, by the numbers of their hosts. ``rules`` may be replaced at any time."""

    def __init__(self, devices: Mapping[int, int], random: Random) -> None:
        self._devices = devices
        self._random = random
        self._rules: dict[Link, LinkRule] = {}
        self._delayed: list[tuple[float, int, int, bytes]] = []
        self._numbers = itertools.count()

    def start(self) -> None:
        """Forward in a thread of its own, which ends with the process."""
        threading.Thread(target=self._forward, name="switch", daemon=True).start()

    @property
    def rules(self) -> Mapping[Link, LinkRule]:
        """The rules of the links that are not sound."""
        return self._rules

    def set_rules(self, rules: Mapping[Link, LinkRule]) -> None:
        """Replace all rules; a link without a rule is sound."""
        self._rules = dict(rules)

    def _forward(self) -> None:
        selector = selectors.DefaultSelector()
        for host, device in self._devices.items():
            selector.register(device, selectors.EVENT_READ, host)
        while True:
            self._deliver_due()
            timeout_s = max(self._delayed[0][0] - time.monotonic(), 0) if self._delayed else None
            for key, _ in selector.select(timeout_s):
                self._read(key.data, key.fd)

    def _read(self, host: int, device: int) -> None:
        for _ in range(PACKETS_A_TURN):
            try:
                packet = os.read(device, LARGEST_PACKET_BYTES)
            except BlockingIOError:
                return
            if packet[0] >> 4 == 4:
                self._take(host, packet[DESTINATION], packet)

    def _take(self, source: int, destination: int, packet: bytes) -> None:
        rule = self._rules.get((source, destination))
        if rule is None:
            self._deliver(destination, packet)
        elif self._random.random() >= rule.lost_share:
            due_s = time.monotonic() + rule.delay_s
            heapq.heappush(self._delayed, (due_s, next(self._numbers), destination, packet))

    def _deliver_due(self) -> None:
        while self._delayed and self._delayed[0][0] <= time.monotonic():
            _, _, destination, packet = heapq.heappop(self._delayed)
            self._deliver(destination, packet)

    def _deliver(self, destination: int, packet: bytes) -> None:
        # A device whose queue is full loses the packet, as a network card does.
        if destination in self._devices:
            with suppress(OSError):
                os.write(self._devices[destination], packet)
