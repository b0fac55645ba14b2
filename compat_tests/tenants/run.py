"""Runs attacks on one node, one after the other, beside nine quiet instances."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

from compat_tests.brokers import Broker, KafkacompatBroker
from compat_tests.confluent import create_topic
from compat_tests.instances import running_instances
from compat_tests.tenants.attacks import ATTACKS, TOPIC, Attack, Figures, Target, prepared_attack
from compat_tests.tenants.pacing import Pace, Place, Sample, paced
from compat_tests.waiting import pause

QUIET = tuple(f"quiet-{number}" for number in range(1, 10))
NOISY = "noisy"
QUIET_TOPIC = "orders"
RATE = 20.0
BINS_A_PHASE = 16
PHASES = ("before", "during", "after")
SHARES = {"p50": 0.5, "p99": 0.99}

Tell = Callable[[str], None]


class Extent(NamedTuple):
    """The length of each phase of an attack, the scale of its counts, and the records a second of each quiet client."""

    seconds: float = 8.0
    scale: float = 1.0
    rate: float = RATE


@dataclass(frozen=True)
class Outcome:
    """What nine quiet instances noticed of one attack.

    ``latencies_ms`` has the percentiles by phase, then by name, such as ``produce p99``. ``timeline`` has them for spans of time:
    ``second`` counts from the beginning of the attack, which lasts ``seconds``. ``noise`` has the attack's own figures, ``cpu_share`` the broker's processor time
    by phase, as a share of one core.
    """

    name: str
    title: str
    seconds: float
    records: int
    unanswered: int
    latencies_ms: Mapping[str, Mapping[str, float]]
    timeline: Sequence[Mapping[str, float]]
    noise: Figures
    is_bounded: bool
    cpu_share: Mapping[str, float]
    resident_mb: Mapping[str, float]

    def ratio(self, percentile: str) -> float:
        """Return how many times as long a percentile is during the attack as before it."""
        return self.latencies_ms["during"][percentile] / self.latencies_ms["before"][percentile]


def run_attacks(names: Sequence[str], folder: Path, extent: Extent, tell: Tell) -> Iterator[Outcome]:
    """Yield the outcome of each attack, on one broker; *tell* receives the progress in words."""
    with KafkacompatBroker(folder) as broker:
        for name in names:
            yield run_attack(broker, ATTACKS[name], extent, tell)


def run_attack(broker: Broker, attack: Attack, extent: Extent, tell: Tell) -> Outcome:
    """Run one attack: a quiet time, the attack, and a quiet time after it."""
    tell("preparing")
    with ExitStack() as stack:
        wanted = {NOISY: attack.properties, **{name: {} for name in QUIET}}
        seen = stack.enter_context(running_instances(broker, wanted))
        for name, broker_seen in seen.items():
            create_topic(broker_seen, TOPIC if name == NOISY else QUIET_TOPIC)
        places = [Place(seen[name].port, QUIET_TOPIC) for name in QUIET]
        noise = stack.enter_context(prepared_attack(attack, Target(seen[NOISY].port, extent.scale)))
        quiet = stack.enter_context(paced(Pace(places, extent.rate)))
        meter = PhaseMeter(broker)
        figures: Figures = {}
        for phase in PHASES:
            tell(phase)
            with meter.measure(phase):
                if phase == "during":
                    noise.begin()
                pause(extent.seconds)
                if phase == "during":
                    figures = noise.end()
        return summarize_attack(attack, quiet.finish(), meter, figures)


class PhaseMeter:
    """Measures the broker in each phase: ``spans`` has their beginnings and ends."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.spans: dict[str, tuple[float, float]] = {}
        self.cpu_share: dict[str, float] = {}
        self.resident_mb: dict[str, float] = {}

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        """Measure a phase, which is the block."""
        begun, cpu_seconds = time.monotonic(), self._broker.cpu_seconds()
        yield
        ended = time.monotonic()
        self.spans[phase] = (begun, ended)
        self.cpu_share[phase] = (self._broker.cpu_seconds() - cpu_seconds) / (ended - begun)
        self.resident_mb[phase] = self._broker.resident_bytes() / 1e6


def summarize_attack(attack: Attack, samples: Sequence[Sample], meter: PhaseMeter, figures: Figures) -> Outcome:
    """Summarize the records of the quiet clients by phase and by spans of time."""
    attack_begun = meter.spans["during"][0]
    by_phase = {phase: select_samples(samples, *span) for phase, span in meter.spans.items()}
    timeline = []
    for begin, end in (bin_span for span in meter.spans.values() for bin_span in split_span(*span)):
        values = find_percentiles(select_samples(samples, begin, end))
        if values:
            timeline.append({"second": round((begin + end) / 2 - attack_begun, 3), **values})
    return Outcome(
        attack.name,
        attack.title,
        round(meter.spans["during"][1] - attack_begun, 3),
        len(samples),
        sum(sample.acknowledged_s is None or sample.fetched_s is None for sample in samples),
        {phase: find_percentiles(chosen) for phase, chosen in by_phase.items()},
        timeline,
        figures,
        attack.is_bounded(figures),
        meter.cpu_share,
        meter.resident_mb,
    )


def select_samples(samples: Sequence[Sample], begin: float, end: float) -> list[Sample]:
    """Return the records that were due in a span of time."""
    return [sample for sample in samples if begin <= sample.due < end]


def split_span(begin: float, end: float) -> Iterator[tuple[float, float]]:
    """Cut a phase into spans of equal length."""
    length = (end - begin) / BINS_A_PHASE
    for number in range(BINS_A_PHASE):
        yield begin + number * length, begin + (number + 1) * length


def find_percentiles(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the percentiles of produce and of fetch, from the due time on, in milliseconds; records without an answer are left out."""
    kinds = {
        "produce": [sample.acknowledged_s for sample in samples],
        "fetch": [sample.fetched_s for sample in samples],
    }
    percentiles: dict[str, float] = {}
    for kind, seconds in kinds.items():
        values = sorted(value * 1e3 for value in seconds if value is not None)
        if len(values) > 1:
            cuts = quantiles(values, n=100, method="inclusive")
            percentiles.update(
                {f"{kind} {name}": round(cuts[round(share * 100) - 1], 3) for name, share in SHARES.items()}
            )
    return percentiles
