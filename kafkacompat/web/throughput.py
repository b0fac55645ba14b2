"""Bytes and records per second of this broker, of its topics and of instances, over the last ten minutes.

The partitions count; a pass every few seconds adds up what is new. Topics and instances without traffic have no history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred

from kafkacompat.timers import yield_unhurried

if TYPE_CHECKING:
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.timers import Clock, DelayedCall

STEP_S = 5.0
POINTS = 120
RECENT_POINTS = 6
MAX_HISTORIES = 200
"""Topics, and instances, that have a history: those with the latest traffic, and of those the busiest."""


class Rates(NamedTuple):
    """What passes in a second."""

    records_in: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0

    @property
    def bytes_moved(self) -> float:
        """Bytes in both directions."""
        return self.bytes_in + self.bytes_out

    def plus(self, other: Rates) -> Rates:
        """Return the sum."""
        return Rates(
            self.records_in + other.records_in,
            self.bytes_in + other.bytes_in,
            self.bytes_out + other.bytes_out,
        )


class Histories:
    """The rates of many names, for each the last `POINTS`."""

    def __init__(self) -> None:
        self._by_name: dict[str, deque[Rates]] = {}
        self._known_steps = 0
        """The last steps in which a name without a history had no traffic."""

    def add(self, rates: dict[str, Rates]) -> None:
        """Add a step: names that are not in *rates* had no traffic. Histories without any traffic go."""
        has_room = len(rates) <= MAX_HISTORIES
        busiest = rates
        if not has_room:
            busiest = dict(nlargest(MAX_HISTORIES, rates.items(), key=lambda item: item[1].bytes_moved))
            self._known_steps = 0
        for name, history in list(self._by_name.items()):
            if name in busiest:
                # Those with the latest traffic are the last ones.
                self._by_name[name] = self._by_name.pop(name)
            history.append(rates.get(name, Rates()))
            if not any(map(any, history)):
                del self._by_name[name]
        idle = [Rates()] * min(self._known_steps, POINTS - 1)
        for name in [name for name in busiest if name not in self._by_name]:
            if len(self._by_name) >= MAX_HISTORIES:
                del self._by_name[next(iter(self._by_name))]
            self._by_name[name] = deque([*idle, rates[name]], POINTS)
        self._known_steps += has_room

    def read(self, name: str) -> Sequence[Rates]:
        """Return the rates of a name, the oldest first; none if they are not known."""
        history = self._by_name.get(name)
        return tuple(history) if history is not None else (Rates(),) * min(self._known_steps, POINTS)

    def list_recent(self) -> dict[str, Rates]:
        """Return the mean rates of the last `RECENT_POINTS` by name, without those that have no traffic."""
        recent = {name: find_mean(list(history)[-RECENT_POINTS:]) for name, history in self._by_name.items()}
        return {name: rates for name, rates in recent.items() if any(rates)}


def find_mean(points: Sequence[Rates]) -> Rates:
    """Return the mean of some points."""
    return Rates(*(sum(values) / len(points) for values in zip(*points, strict=True)))


class Throughput:
    """Measures the partitions of a broker; *find_instance* returns the name of the instance that has a topic, or None."""

    def __init__(
        self, clock: Clock, partitions: Iterable[Partition], find_instance: Callable[[str], str | None]
    ) -> None:
        self._clock = clock
        self._partitions = partitions
        self._find_instance = find_instance
        self._counts: WeakKeyDictionary[Partition, tuple[int, int, int]] = WeakKeyDictionary()
        self._measured_s: float | None = None
        self._call: DelayedCall | None = None
        self._is_running = False
        self._all: deque[Rates] = deque(maxlen=POINTS)
        self._topics = Histories()
        self._instances = Histories()

    def start(self) -> None:
        """Begin to measure."""
        self._is_running = True
        self._call = self._clock.callLater(0, self._begin_pass)

    def stop(self) -> None:
        """Measure no more."""
        self._is_running = False
        if self._call is not None and self._call.active():
            self._call.cancel()

    def read_all(self) -> Sequence[Rates]:
        """Return the rates of the whole broker, the oldest first, one every `STEP_S`."""
        return tuple(self._all)

    def read_topic(self, physical: str) -> Sequence[Rates]:
        """Return the rates of a topic, by its physical name."""
        return self._topics.read(physical)

    def read_instance(self, name: str) -> Sequence[Rates]:
        """Return the rates of an instance."""
        return self._instances.read(name)

    def list_busy_topics(self) -> dict[str, Rates]:
        """Return the mean rates of the last `RECENT_POINTS` of topics with traffic, by their physical names."""
        return self._topics.list_recent()

    def find_topic_rates(self, physical: str) -> Rates | None:
        """Return the mean rates of the last `RECENT_POINTS` of a topic; None if they are not known."""
        recent = self.read_topic(physical)[-RECENT_POINTS:]
        return find_mean(recent) if recent else None

    def _begin_pass(self) -> None:
        Deferred.fromCoroutine(self.measure()).addBoth(self._schedule)

    def _schedule(self, outcome: object) -> object:
        if self._is_running:
            self._call = self._clock.callLater(STEP_S, self._begin_pass)
        return outcome

    async def measure(self) -> None:
        """Pass over all partitions in turns, and add a point to the histories; the first pass only notes the counts."""
        begun_s, before_s = self._clock.seconds(), self._measured_s
        growth: dict[str, tuple[int, int, int]] = {}
        async for partition in yield_unhurried(self._clock, list(self._partitions)):
            if not self._is_running:
                return
            self._add_growth(partition, growth)
        self._measured_s = begun_s
        if before_s is not None and begun_s > before_s:
            seconds = begun_s - before_s
            topics = {
                topic: Rates(records_in / seconds, bytes_in / seconds, bytes_out / seconds)
                for topic, (records_in, bytes_in, bytes_out) in growth.items()
                if records_in or bytes_in or bytes_out
            }
            self._add_point(topics)

    def _add_growth(self, partition: Partition, growth: dict[str, tuple[int, int, int]]) -> None:
        traffic = partition.traffic
        traffic.update(partition.log)
        counts = traffic.led_records, traffic.led_bytes, traffic.sent_bytes
        before = self._counts.get(partition, (0, 0, 0))
        if counts != before:
            self._counts[partition] = counts
            sums = growth.get(partition.topic, (0, 0, 0))
            growth[partition.topic] = (
                sums[0] + counts[0] - before[0],
                sums[1] + counts[1] - before[1],
                sums[2] + counts[2] - before[2],
            )

    def _add_point(self, topics: dict[str, Rates]) -> None:
        total = Rates()
        instances: dict[str, Rates] = {}
        for topic, rates in topics.items():
            total = total.plus(rates)
            owner = self._find_instance(topic)
            if owner is not None:
                instances[owner] = instances.get(owner, Rates()).plus(rates)
        self._all.append(total)
        self._topics.add(topics)
        self._instances.add(instances)
