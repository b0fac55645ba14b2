"""The master's view of one direction of one instance: what the brokers use, and what each may use.

Each algorithm is a class with the method `report`, in the table `ALGORITHMS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from kafkacompat.tenancy.traffic.article import divide_by_article
from kafkacompat.tenancy.traffic.shared import Usage, divide_by_need, find_floor, find_grant, find_need
from kafkacompat.tenancy.traffic.static import divide_by_partitions

SHARED, ARTICLE, STATIC = "shared", "article", "static"


class InstanceLimits(NamedTuple):
    """What all brokers together may move for an instance, in bytes per second; -1 is no limit."""

    produce: float
    fetch: float
    algorithm: str = SHARED


class DivisionSituation(NamedTuple):
    """What a division is made of besides the brokers' reports.

    ``brokers`` are the live ones, in order. ``find_partitions`` returns the number of the instance's partitions by broker.
    ``find_reserved`` returns what brokers that do not report may use above their floors. ``is_settled`` is False while a new master does not
    know yet what all brokers have.
    """

    limit: float
    brokers: Sequence[int]
    find_partitions: Callable[[], Mapping[int, int]]
    find_reserved: Callable[[], float] = lambda: 0.0
    is_settled: bool = True

    @property
    def floor(self) -> float:
        """The share that each live broker always has."""
        return find_floor(self.limit, len(self.brokers))

    def count_partitions(self) -> list[int]:
        """Return the partitions of each live broker."""
        counts = self.find_partitions()
        return [counts.get(broker, 0) for broker in self.brokers]


class Division(Protocol):
    """Divides one direction of an instance's traffic."""

    def report(self, broker: int, usage: Usage, situation: DivisionSituation) -> float:
        """Take over a broker's report, and return its share from now on."""

    def find_loan(self, broker: int, floor: float) -> float:
        """Return what a broker may use above its floor, as far as this master knows."""

    def forget(self, broker: int) -> bool:
        """Forget a broker that has nothing but its floor, or is gone; return whether none is left."""


class SharedLoans:
    """Lends by need, see `kafkacompat.tenancy.traffic.shared`."""

    __slots__ = ("_usages",)

    def __init__(self) -> None:
        self._usages: dict[int, Usage] = {}

    def report(self, broker: int, usage: Usage, situation: DivisionSituation) -> float:
        """See Division. The broker has given back before what it does not need."""
        usages = self._usages
        usages[broker] = usage
        if not situation.is_settled:
            return usage.share
        floor = situation.floor
        lent = [(known.share, find_need(known, floor), known.held_back > 0) for known in usages.values()]
        shares, needs, holding = zip(*lent, strict=True)
        others = max(len(situation.brokers) - len(usages), 0)
        limit = situation.limit - others * floor - situation.find_reserved()
        target = divide_by_need(limit, floor, needs, holding)[list(usages).index(broker)]
        share = find_grant(target, usage.share, limit - sum(shares))
        if share > usage.share:
            usages[broker] = usage._replace(share=share)
        return share

    def find_loan(self, broker: int, floor: float) -> float:
        """See Division."""
        usage = self._usages.get(broker)
        return 0.0 if usage is None else max(usage.share - floor, 0.0)

    def forget(self, broker: int) -> bool:
        """See Division."""
        self._usages.pop(broker, None)
        return not self._usages


class ArticleShares:
    """Divides by the rules of the article, see `kafkacompat.tenancy.traffic.article`."""

    __slots__ = ("_traffic",)

    def __init__(self) -> None:
        self._traffic: dict[int, float] = {}

    def report(self, broker: int, usage: Usage, situation: DivisionSituation) -> float:
        """See Division."""
        self._traffic[broker] = usage.used
        brokers = situation.brokers
        traffic = [self._traffic.get(known, 0.0) for known in brokers]
        shares = divide_by_article(situation.limit, situation.count_partitions(), traffic)
        return shares[brokers.index(broker)]

    def find_loan(self, broker: int, floor: float) -> float:
        """See Division. The article does not account for what brokers have."""
        return 0.0

    def forget(self, broker: int) -> bool:
        """See Division."""
        self._traffic.pop(broker, None)
        return not self._traffic


class StaticShares:
    """Divides by partitions, whatever the brokers use; for comparison."""

    __slots__ = ()

    def report(self, broker: int, usage: Usage, situation: DivisionSituation) -> float:
        """See Division."""
        return divide_by_partitions(situation.limit, situation.count_partitions())[situation.brokers.index(broker)]

    def find_loan(self, broker: int, floor: float) -> float:
        """See Division."""
        return 0.0

    def forget(self, broker: int) -> bool:
        """See Division."""
        return True


ALGORITHMS: Mapping[str, Callable[[], Division]] = {SHARED: SharedLoans, ARTICLE: ArticleShares, STATIC: StaticShares}
"""By the value of traffic.algorithm."""
