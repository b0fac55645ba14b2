"""The traffic master: it receives each broker's use of all instances, and returns the broker's shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from kafkacompat.tenancy.traffic.loans import ALGORITHMS, SHARED, Division, DivisionSituation, InstanceLimits
from kafkacompat.tenancy.traffic.shared import Usage, find_floor
from kafkacompat.tenancy.traffic.static import DECAYED_INTERVALS, HOLD_MS, divide_by_partitions

PRODUCE, FETCH = 0, 1
"""The directions of traffic, as messages between brokers number them."""
SETTLE_INTERVALS = 5
"""Intervals after which a new master no longer waits for the first report of a live broker, such as one of Kafka."""


class FlowUsage(NamedTuple):
    """A broker's use of one direction of an instance."""

    instance: str
    direction: int
    usage: Usage


class FlowShare(NamedTuple):
    """A broker's new share of one direction of an instance."""

    instance: str
    direction: int
    share: float


FindPartitions = Callable[[str], Mapping[int, int]]
_Key = tuple[str, int]


def find_limit(limits: InstanceLimits, direction: int) -> float:
    """Return the limit of a direction, negative for none."""
    return limits.fetch if direction else limits.produce


def find_static_share(limits: InstanceLimits, broker: int, situation: DivisionSituation) -> float:
    """Return a broker's share by partitions alone: what it decays to, and the F of the article."""
    floor = situation.floor if limits.algorithm == SHARED else 0.0
    brokers = situation.brokers
    lendable = situation.limit - floor * len(brokers)
    return floor + divide_by_partitions(lendable, situation.count_partitions())[brokers.index(broker)]


def _is_limited(entry: FlowUsage, limits: Mapping[str, InstanceLimits]) -> bool:
    known = limits.get(entry.instance)
    if known is None or entry.direction not in (PRODUCE, FETCH) or find_limit(known, entry.direction) < 0:
        return False
    return all(is_rate(value) for value in entry.usage)


def is_rate(value: float) -> bool:
    """Return whether a number from a message can be of bytes per second; neither infinity nor NaN can."""
    return 0 <= value < inf


class TrafficMaster:
    """Divides the traffic of all instances; *find_partitions* returns an instance's partitions by broker."""

    def __init__(self, interval_ms: int, now_ms: int, find_partitions: FindPartitions) -> None:
        self._interval_ms = interval_ms
        self._began_ms = now_ms
        self._find_partitions = find_partitions
        self._divisions: dict[_Key, tuple[str, Division]] = {}
        self._reported: dict[int, set[_Key]] = {}
        self._reported_ms: dict[int, int] = {}

    def answer(
        self,
        broker: int,
        usages: Sequence[FlowUsage],
        brokers: Sequence[int],
        limits: Mapping[str, InstanceLimits],
        now_ms: int,
        shares: list[FlowShare],
    ) -> Iterator[None]:
        """Take over a broker's report and append its new shares to *shares*, with a step for each entry.

        *brokers* are the live ones, in order, *broker* among them. An entry for an instance without a limit is ignored, and
        so is one with impossible numbers.
        """
        self._forget_brokers(brokers)
        self._reported_ms[broker] = now_ms
        limited = [entry for entry in usages if _is_limited(entry, limits)]
        keys = {(entry.instance, entry.direction) for entry in limited}
        for key in self._reported.get(broker, set()) - keys:
            self._forget(broker, key)
            yield
        self._reported[broker] = keys
        silent = [known for known in brokers if self._is_silent(known, now_ms)]
        for known in silent:
            if self._has_decayed(known, now_ms):
                self._forget_all(known)
        is_settled = self._is_settled(brokers, now_ms)
        for entry in limited:
            share = self._divide(broker, entry, limits[entry.instance], brokers, silent, is_settled)
            shares.append(FlowShare(entry.instance, entry.direction, share))
            yield

    def _divide(
        self,
        broker: int,
        entry: FlowUsage,
        limits: InstanceLimits,
        brokers: Sequence[int],
        silent: Sequence[int],
        is_settled: bool,
    ) -> float:
        key = entry.instance, entry.direction
        algorithm, division = self._divisions.get(key, ("", None))
        if division is None or algorithm != limits.algorithm:
            division = ALGORITHMS[limits.algorithm]()
            self._divisions[key] = limits.algorithm, division
        situation = DivisionSituation(
            find_limit(limits, entry.direction),
            brokers,
            lambda: self._find_partitions(entry.instance),
            lambda: self._find_reserved(division, limits, key, brokers, silent),
            is_settled,
        )
        return division.report(broker, entry.usage, situation)

    def _find_reserved(
        self,
        division: Division,
        limits: InstanceLimits,
        key: _Key,
        brokers: Sequence[int],
        silent: Sequence[int],
    ) -> float:
        """Return what silent brokers may use above their floors: their shares may be on the way to the static ones."""
        if not silent:
            return 0.0
        limit = find_limit(limits, key[1])
        floor = find_floor(limit, len(brokers))
        situation = DivisionSituation(limit, brokers, lambda: self._find_partitions(key[0]))
        reserved = 0.0
        for broker in silent:
            static = find_static_share(limits, broker, situation)
            loan = division.find_loan(broker, floor)
            reserved += max(loan, static - floor)
            # The division counts its own loans already.
            reserved -= loan
        return reserved

    def _is_silent(self, broker: int, now_ms: int) -> bool:
        """Return whether a broker may soon change its shares by itself, or is one that never reports."""
        reported_ms = self._reported_ms.get(broker)
        if reported_ms is None:
            return True
        return now_ms - reported_ms > HOLD_MS - 2 * self._interval_ms

    def _has_decayed(self, broker: int, now_ms: int) -> bool:
        """Return whether a silent broker certainly has its static shares by now."""
        reported_ms = self._reported_ms.get(broker, now_ms)
        return now_ms - reported_ms > HOLD_MS + DECAYED_INTERVALS * self._interval_ms

    def _is_settled(self, brokers: Sequence[int], now_ms: int) -> bool:
        is_known = all(broker in self._reported_ms for broker in brokers)
        return is_known or now_ms - self._began_ms > SETTLE_INTERVALS * self._interval_ms

    def _forget_brokers(self, brokers: Sequence[int]) -> None:
        """Forget what brokers had that are not alive any more."""
        for gone in self._reported_ms.keys() - set(brokers):
            del self._reported_ms[gone]
            self._forget_all(gone)

    def _forget_all(self, broker: int) -> None:
        for key in self._reported.pop(broker, ()):
            self._forget(broker, key)

    def _forget(self, broker: int, key: _Key) -> None:
        known = self._divisions.get(key)
        if known is not None and known[1].forget(broker):
            del self._divisions[key]
