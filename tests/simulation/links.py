"""The links between all hosts: how long they take, and which are cut. A link that is cut twice is cut until it is healed twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

from tests.fakes.memory_network import MemoryNetwork

SPIKE = 0.005
"""Share of packets that have to be sent again."""
SPIKE_S = 0.2


def draw_jitter(rng: Random, usual_s: float) -> Callable[[], float]:
    """Return what draws a packet's delay."""
    random = rng.random

    def draw() -> float:
        drawn = random()
        return SPIKE_S if drawn < SPIKE else usual_s * (0.5 + drawn)

    return draw


class Cuts:
    """The links of *hosts*, each with delays of its own."""

    def __init__(self, network: MemoryNetwork, seed: int, usual_s: float) -> None:
        self._network = network
        self._seed = seed
        self._usual_s = usual_s
        self._hosts: list[str] = []
        self._cuts: Counter[tuple[str, str]] = Counter()
        self._isolated: set[str] = set()

    def add_host(self, name: str) -> None:
        """Make the links of a host to all others."""
        self._hosts.append(name)
        for other in self._hosts:
            for source, target in {(name, other): None, (other, name): None}:
                usual_s = self._usual_s if source != target else self._usual_s / 10
                link = self._network.link(source, target)
                link.jitter = draw_jitter(Random(f"{self._seed} {source} {target}"), usual_s)
                if source != target and self._isolated & {source, target}:
                    self.cut([(source, target)])

    def cut(self, links: Iterable[tuple[str, str]]) -> None:
        """Let nothing through these links, given by source and target."""
        for key in links:
            self._cuts[key] += 1
            if self._cuts[key] == 1:
                self._network.link(*key).cut()

    def heal(self, links: Iterable[tuple[str, str]]) -> None:
        """End a cut."""
        for key in links:
            self._cuts[key] -= 1
            if not self._cuts[key]:
                self._network.link(*key).heal()

    def _links_of(self, host: str) -> list[tuple[str, str]]:
        others = [other for other in self._hosts if other != host]
        return [(host, other) for other in others] + [(other, host) for other in others]

    def isolate(self, host: str) -> None:
        """Cut all links of a host until `rejoin`."""
        self._isolated.add(host)
        self.cut(self._links_of(host))

    def rejoin(self, host: str) -> None:
        """Heal the links of a host."""
        self._isolated.discard(host)
        self.heal(self._links_of(host))

    def set_delay(self, source: str, target: str, delay_s: float) -> None:
        """Add a delay to a link; 0 ends it."""
        self._network.link(source, target).delay_s = delay_s
