"""One instance under one algorithm: brokers that measure, report and hold back, and a master. Imports no pyspark.

Brokers and master are those of kafkacompat; only the clients are made up. A client that waits keeps a second of what it wants to send,
and lets the rest be. What it sends at once is a hundredth of the limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkacompat.tenancy.traffic.control import TrafficControl, find_hurried_ms, find_report_delay_ms
from kafkacompat.tenancy.traffic.loans import STATIC, InstanceLimits
from kafkacompat.tenancy.traffic.master import FlowShare, FlowUsage, TrafficMaster
from spark_integration.traffic.demand import Demand

STEPS_A_SECOND = 8
STEP_MS = 1000 // STEPS_A_SECOND
WARM_UP_S = 10
"""Seconds that do not count: an instance begins with nothing lent."""
REQUEST_PART = 0.01
"""A request's part of the limit's bytes of a second."""
ADAPTED = 0.95
"""Part of what could be used from which on a change counts as adapted to."""
OVERSHOOT_S = 10


@dataclass(frozen=True)
class Outcome:
    """What an algorithm made of one instance's demand.

    ``usable`` is the part of the paid throughput that was used, of what clients demanded within the limit. ``overshoot`` is the most that
    was used in ten seconds beyond the limit, and ``peak`` the most in one second, as parts of the limit. ``adapting_s`` are the seconds
    after each change until the instance could use what it demanded within its limit.
    """

    instance: str
    kind: str
    algorithm: str
    usable: float
    overshoot: float
    peak: float
    adapting_s: tuple[float, ...]
    used_by_second: tuple[float, ...]


class _Broker:
    """One broker and its clients."""

    def __init__(self, control: TrafficControl, interval_ms: int, phase_ms: int) -> None:
        self.control = control
        self._interval_ms = interval_ms
        self.reported_ms = 0
        self.flow = control.by_name[""].produced
        self.backlog = 0.0
        self.next_report_ms = phase_ms
        control.on_held_back = self._hurry
        self.now_ms = 0

    def _hurry(self) -> None:
        self.next_report_ms = min(
            self.next_report_ms, find_hurried_ms(self.now_ms, self.reported_ms, self._interval_ms)
        )

    def send(self, demanded: float, request_bytes: float, now_ms: int) -> float:
        """Send what may be sent in one step, and return the bytes."""
        self.now_ms = now_ms
        self.backlog = min(self.backlog + demanded, demanded * STEPS_A_SECOND)
        bucket = self.flow.bucket
        assert bucket is not None
        tokens = bucket.refill(now_ms)
        if tokens < 0 or not self.backlog:
            return 0.0
        sent = min(self.backlog, tokens + request_bytes)
        self.backlog -= sent
        self.flow.charge(round(sent), now_ms)
        return sent


def simulate(demand: Demand, algorithm: str, interval_ms: int = 1000) -> Outcome:
    """Run one instance's demand under an algorithm."""
    numbers = list(range(len(demand.partitions)))
    partitions = dict(enumerate(demand.partitions))
    limits = {"": InstanceLimits(demand.limit, -1, algorithm)}
    brokers = []
    for number in numbers:
        control = TrafficControl(number, interval_ms, 0, lambda _: partitions)
        control.set_brokers(numbers, 0)
        control.configure(limits, 0)
        list(control.use_static(0))
        brokers.append(_Broker(control, interval_ms, number * 37 % interval_ms))
    master = TrafficMaster(interval_ms, 0, lambda _: partitions)
    used_by_step = []
    now_ms = 0
    for row in demand.bytes:
        for _ in range(STEPS_A_SECOND):
            now_ms += STEP_MS
            used_by_step.append(
                sum(
                    broker.send(part / STEPS_A_SECOND, demand.limit * REQUEST_PART, now_ms)
                    for broker, part in zip(brokers, row, strict=True)
                )
            )
            if algorithm != STATIC:
                for number, broker in enumerate(brokers):
                    if now_ms >= broker.next_report_ms:
                        _report(master, number, broker, numbers, limits, now_ms, interval_ms)
    return _judge(demand, algorithm, used_by_step)


def _report(
    master: TrafficMaster,
    number: int,
    broker: _Broker,
    numbers: list[int],
    limits: dict[str, InstanceLimits],
    now_ms: int,
    interval_ms: int,
) -> None:
    usages: list[FlowUsage] = []
    shares: list[FlowShare] = []
    list(broker.control.measure(now_ms, usages, gives_back=True))
    list(master.answer(number, usages, numbers, limits, now_ms, shares))
    broker.control.apply(shares, now_ms)
    broker.reported_ms, broker.next_report_ms = now_ms, now_ms + find_report_delay_ms(len(usages), interval_ms)


def _judge(demand: Demand, algorithm: str, used_by_step: list[float]) -> Outcome:
    limit = demand.limit
    used = [
        sum(used_by_step[second * STEPS_A_SECOND : (second + 1) * STEPS_A_SECOND])
        for second in range(len(demand.bytes))
    ]
    wanted = [min(sum(row), limit) for row in demand.bytes]
    counted = range(min(WARM_UP_S, len(used) - 1), len(used))
    total = sum(wanted[second] for second in counted)
    # What exceeds the limit is no use that was paid for.
    usable = sum(min(used[second], limit, max(wanted[second], used[second])) for second in counted)
    windows = [sum(used[second : second + OVERSHOOT_S]) for second in counted if second + OVERSHOOT_S <= len(used)]
    return Outcome(
        demand.instance,
        demand.kind,
        algorithm,
        min(usable / total, 1.0) if total else 1.0,
        max(max(windows, default=0.0) / (limit * OVERSHOOT_S) - 1, 0.0),
        max(used[second] for second in counted) / limit,
        tuple(_find_adapting_times(demand, used_by_step)),
        tuple(round(value / limit, 4) for value in used),
    )


def _find_adapting_times(demand: Demand, used_by_step: list[float]) -> list[float]:
    """Return the time after each change until as much is used, within half a second, as is demanded within the limit."""
    times = []
    ends = [*demand.moves, len(demand.bytes)][1:]
    for move, end in zip(demand.moves, ends, strict=True):
        if move < WARM_UP_S:
            continue
        half = STEPS_A_SECOND // 2
        for step in range(move * STEPS_A_SECOND, end * STEPS_A_SECOND - half + 1):
            wanted = min(sum(demand.bytes[step // STEPS_A_SECOND]), demand.limit) / STEPS_A_SECOND
            if sum(used_by_step[step : step + half]) >= ADAPTED * wanted * half:
                times.append(step / STEPS_A_SECOND - move)
                break
        else:
            times.append(float(end - move))
    return times
