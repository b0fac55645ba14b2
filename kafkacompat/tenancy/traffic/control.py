"""The shares of one broker: what it measures and reports, what it is given, and what it keeps to without a master."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from kafkacompat.tenancy.traffic.bucket import ShareBucket
from kafkacompat.tenancy.traffic.loans import SHARED, DivisionSituation, InstanceLimits
from kafkacompat.tenancy.traffic.master import (
    FETCH,
    PRODUCE,
    FindPartitions,
    FlowShare,
    FlowUsage,
    find_limit,
    find_static_share,
    is_rate,
)
from kafkacompat.tenancy.traffic.metering import REPORTS_AN_INTERVAL, Flow, InstanceTraffic
from kafkacompat.tenancy.traffic.shared import REMEMBERED_FLOORS, find_floor, find_kept_share
from kafkacompat.tenancy.traffic.static import HOLD_MS, decay

NO_LIMITS = InstanceLimits(-1, -1)
HURRY = 20
"""The part of an interval after which a broker reports that clients begin to wait."""
MOST_FREQUENT = 100
"""The most entries of a report that is sent several times an interval: large ones cost the master time."""
_Key = tuple[str, int]


class TrafficControl:
    """All instances' traffic on one broker. Times are in milliseconds of one steady clock.

    ``by_name`` has the meters of all instances. ``on_held_back`` is called when clients begin to wait. *find_partitions* returns an
    instance's partitions by broker. The methods that go over all instances are iterators with a step for each.
    """

    def __init__(self, node_id: int, interval_ms: int, now_ms: int, find_partitions: FindPartitions) -> None:
        self.by_name: dict[str, InstanceTraffic] = {}
        self.on_held_back: Callable[[], None] = lambda: None
        self._node_id = node_id
        self._interval_ms = interval_ms
        self._find_partitions = find_partitions
        self._limits: dict[str, InstanceLimits] = {}
        self._brokers: Sequence[int] = (node_id,)
        self._answered_ms = now_ms
        self._last_shares: dict[_Key, float] = {}
        self._given_back: dict[_Key, float] = {}
        self._active: dict[_Key, None] = {}
        """What was used since the last report, or has more than its floor here: only that is measured."""

    @property
    def has_limits(self) -> bool:
        """Whether the traffic of any instance is limited."""
        return any(limits.produce >= 0 or limits.fetch >= 0 for limits in self._limits.values())

    # The configuration

    def configure(self, limits: Mapping[str, InstanceLimits], now_ms: int) -> None:
        """Replace the limits of all instances."""
        for name in self.by_name.keys() - limits.keys():
            self.remove(name)
        for name, new in limits.items():
            self.set_limits(name, new, now_ms)

    def remove(self, name: str) -> None:
        """Measure an instance no longer."""
        del self.by_name[name], self._limits[name]
        for key in ((name, PRODUCE), (name, FETCH)):
            self._active.pop(key, None)
            self._last_shares.pop(key, None)

    def set_limits(self, name: str, new: InstanceLimits, now_ms: int) -> InstanceTraffic:
        """Set the limits of an instance; return its meter. A share changes in proportion to its limit."""
        traffic = self.by_name.get(name)
        if traffic is None:
            traffic = self.by_name[name] = InstanceTraffic(self._interval_ms, now_ms, self._note_held_back)
            for direction in (PRODUCE, FETCH):
                find_flow(traffic, direction).on_used = partial(self._note_used, (name, direction))
        old, self._limits[name] = self._limits.get(name, NO_LIMITS), new
        if new != old:
            for direction in (PRODUCE, FETCH):
                flow = find_flow(traffic, direction)
                self._set_limit(flow, find_limit(old, direction), find_limit(new, direction), now_ms)
                self._note_used((name, direction))
                self._last_shares.pop((name, direction), None)
        return traffic

    def _note_held_back(self) -> None:
        self.on_held_back()

    def _note_used(self, key: _Key) -> None:
        self._active[key] = None

    def _set_limit(self, flow: Flow, old: float, new: float, now_ms: int) -> None:
        if new < 0:
            flow.bucket = None
        elif flow.bucket is None or old <= 0:
            flow.bucket = ShareBucket(find_floor(new, len(self._brokers)), self._interval_ms, now_ms)
            flow.forget_use(now_ms)
        else:
            flow.bucket.set_share(flow.bucket.share * new / old, now_ms)

    def set_brokers(self, brokers: Sequence[int], now_ms: int) -> None:
        """Take over the live brokers, in order. A share that was but a floor becomes the new floor."""
        brokers = brokers if self._node_id in brokers else sorted((*brokers, self._node_id))
        old_count, new_count = len(self._brokers), len(brokers)
        self._brokers = brokers
        if old_count == new_count:
            return
        for _, flow, limit, _ in self._list_limited():
            bucket = flow.bucket
            assert bucket is not None
            if new_count == 1 or bucket.share <= find_floor(limit, old_count):
                bucket.set_share(find_floor(limit, new_count), now_ms)

    def _list_limited(self) -> Iterator[tuple[_Key, Flow, float, InstanceLimits]]:
        for name, limits in list(self._limits.items()):
            traffic = self.by_name.get(name)
            if traffic is None:
                continue
            for direction in (PRODUCE, FETCH):
                flow = find_flow(traffic, direction)
                if flow.bucket is not None:
                    yield (name, direction), flow, find_limit(limits, direction), limits

    # The reports

    def measure(self, now_ms: int, usages: list[FlowUsage], *, gives_back: bool) -> Iterator[None]:
        """Append the use of all instances since the last report to *usages*; give back what is not needed if *gives_back* is set.

        An instance is left out if nothing was used of it and this broker has only its floor.
        """
        self._given_back.clear()
        for key in list(self._active):
            yield
            traffic, limits = self.by_name.get(key[0]), self._limits.get(key[0], NO_LIMITS)
            flow = None if traffic is None else find_flow(traffic, key[1])
            bucket = None if flow is None else flow.bucket
            if flow is None or bucket is None:
                self._active.pop(key, None)
                continue
            floor = find_floor(find_limit(limits, key[1]), len(self._brokers))
            is_shared = limits.algorithm == SHARED
            if is_shared and not flow.is_used and bucket.share <= floor:
                self._active.pop(key, None)
                flow.is_noted = False
                continue
            usage = flow.measure(now_ms, REMEMBERED_FLOORS * floor if is_shared else 0.0)
            flow.begin_measurement(now_ms)
            if is_shared and gives_back:
                kept = find_kept_share(usage, floor)
                if kept < usage.share:
                    self._given_back[key] = usage.share
                    bucket.set_share(kept, now_ms)
                    usage = usage._replace(share=kept)
            usages.append(FlowUsage(*key, usage))

    def take_back(self, now_ms: int) -> None:
        """Take back what `measure` has given back: the report has not left this broker."""
        for (name, direction), share in self._given_back.items():
            self._set_share((name, direction), share, now_ms)
        self._given_back.clear()

    def apply(self, shares: Sequence[FlowShare], now_ms: int) -> None:
        """Take over the shares that the master has answered with."""
        self._answered_ms = now_ms
        self._given_back.clear()
        self._last_shares.clear()
        for name, direction, share in shares:
            if is_rate(share):
                self._set_share((name, direction), share, now_ms)

    def _set_share(self, key: _Key, share: float, now_ms: int) -> None:
        traffic = self.by_name.get(key[0])
        bucket = None if traffic is None else find_flow(traffic, key[1]).bucket
        if bucket is not None:
            bucket.set_share(share, now_ms)

    # Without a master

    def decay(self, now_ms: int) -> Iterator[None]:
        """Move the shares towards the static ones, by the time since the last answer; before the end of the hold they stay."""
        silent_ms = now_ms - self._answered_ms
        if silent_ms <= HOLD_MS:
            return
        for key, flow, limit, limits in self._list_limited():
            yield
            if flow.bucket is not None:
                last = self._last_shares.setdefault(key, flow.bucket.share)
                static = self._find_static(key, limit, limits)
                flow.bucket.set_share(decay(last, static, silent_ms, self._interval_ms), now_ms)
                self._note_used(key)

    def use_static(self, now_ms: int) -> Iterator[None]:
        """Take the static shares at once: this cluster's controller divides no traffic."""
        for key, flow, limit, limits in self._list_limited():
            yield
            if flow.bucket is not None:
                flow.bucket.set_share(self._find_static(key, limit, limits), now_ms)
                self._note_used(key)

    def _find_static(self, key: _Key, limit: float, limits: InstanceLimits) -> float:
        situation = DivisionSituation(limit, self._brokers, lambda: self._find_partitions(key[0]))
        return find_static_share(limits, self._node_id, situation)


def find_report_delay_ms(entries: int, interval_ms: int) -> int:
    """Return the time from a report with this number of entries to the next one."""
    return interval_ms // REPORTS_AN_INTERVAL if 0 < entries <= MOST_FREQUENT else interval_ms


def find_hurried_ms(now_ms: int, reported_ms: int, interval_ms: int) -> int:
    """Return when a broker reports whose clients begin to wait: soon, but not more often than it reports anyhow."""
    return max(now_ms + interval_ms // HURRY, reported_ms + interval_ms // REPORTS_AN_INTERVAL)


def find_flow(traffic: InstanceTraffic, direction: int) -> Flow:
    """Return one direction of an instance's traffic."""
    return traffic.fetched if direction == FETCH else traffic.produced
