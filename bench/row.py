"""A row of the benchmark: a load, the contenders that it runs on, and the goals for its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from compat_tests.brokers import Broker
from compat_tests.clusters import Cluster

KAFKA = "Apache Kafka 4.3.1"
OLD_KAFKA = "Apache Kafka 3.9.1"
RECORDS = "kafkacompat"
HEADER = "kafkacompat, header validation"

Served = TypeVar("Served", Broker, Cluster)

Samples = dict[str, float]
"""One run's figures by metric; the metric's name ends with its unit."""


@dataclass(frozen=True)
class Options:
    """The extent of a measurement.

    ``scale`` shortens every load. ``cold_gigabytes`` is the size of the cold reader's topic, ``stored_gigabytes`` that of the data in the
    row ``stored``, ``backlog_gigabytes`` that of what a replica of a cluster missed. ``rate`` is the result of a row's calibration, in requests a second.
    """

    pairs: int = 5
    scale: float = 1.0
    cold_gigabytes: float = 5.0
    stored_gigabytes: float = 20.0
    backlog_gigabytes: float = 1.0
    rate: float = 0.0

    def count(self, full: int) -> int:
        """Return the scaled count, at least 1."""
        return max(1, int(full * self.scale))


@dataclass(frozen=True)
class Goal:
    """A bound for one metric: for its ratio to Kafka's in the same pair, or for the figure itself."""

    metric: str
    bound: float
    at_least: bool
    contender: str = RECORDS
    is_ratio: bool = True

    def sentence(self) -> str:
        side = "at least" if self.at_least else "at most"
        measure = f"{self.bound:g} times Kafka's" if self.is_ratio else f"{self.bound:g}"
        return f"{self.contender}: {self.metric} {side} {measure}"


@dataclass(frozen=True)
class ServedRow(Generic[Served]):
    """One kind of measurement.

    ``measure`` runs the load once on a broker or cluster and returns its figures. ``fresh`` rows start a new one for each run; in the
    others the contenders stay up and warm up first. ``calibrate`` measures, on Kafka, the rate of the load for all contenders.
    """

    name: str
    title: str
    about: str
    measure: Callable[[Served, Options], Samples]
    goals: Sequence[Goal]
    contenders: Sequence[str] = (RECORDS, KAFKA)
    properties: Mapping[str, str] = field(default_factory=dict)
    fresh: bool = False
    calibrate: Callable[[Served, Options], float] | None = None


@dataclass(frozen=True)
class Row(ServedRow[Broker]):
    """A measurement of single nodes."""


@dataclass(frozen=True)
class ClusterRow(ServedRow[Cluster]):
    """A measurement of clusters of three nodes; ``article`` has the figures that LinkedIn published in 2014, by metric."""

    article: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LibraryRow:
    """A measurement of libraries in this process, without a broker."""

    name: str
    title: str
    about: str
    libraries: Mapping[str, Callable[[Options], Samples]]
    goals: Sequence[Goal]


AnyRow: TypeAlias = "Row | ClusterRow | LibraryRow"


def throughput_goals(throughput: float, cpu: float, contender: str = RECORDS) -> list[Goal]:
    """Return the pair of goals that most rows have."""
    return [
        Goal("records/s", throughput, at_least=True, contender=contender),
        Goal("broker CPU s per million records", cpu, at_least=False, contender=contender),
    ]
