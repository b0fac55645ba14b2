"""Step 2: consume every flight with kafka-python, by a group of three members."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer

from spark_integration.demo.flights import PARTITIONS, TOPIC
from spark_integration.errors import PipelineError

MEMBERS = 3
GIVE_UP_SECONDS = 30.0
# With kafka-python 3.0, a poll that ends while its member joins drops the response, and the member then hangs.
POLL_MS = 2000


@dataclass
class FlightCounts:
    """The flights that the group has consumed; its members add to it under one lock."""

    by_member: Counter[str] = field(default_factory=Counter)
    by_carrier: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def total(self) -> int:
        return self.by_member.total()

    def add(self, member: str, carriers: Sequence[str]) -> None:
        with self.lock:
            self.by_member[member] += len(carriers)
            self.by_carrier.update(carriers)


@dataclass
class DemoGroup:
    """What the three members share: they begin to read together and end together, and one that fails ends all."""

    bootstrap: str
    counts: FlightCounts
    advance: Callable[[int], None]
    shares: dict[str, int] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)
    all_committed: threading.Barrier = field(default_factory=lambda: threading.Barrier(MEMBERS))
    failures: list[Exception] = field(default_factory=list)

    @property
    def is_balanced(self) -> bool:
        return len(self.shares) == MEMBERS and sum(self.shares.values()) == PARTITIONS

    def fail(self, problem: Exception) -> None:
        """End all members, including those that wait for the failed one to commit."""
        self.failures.append(problem)
        self.done.set()
        self.all_committed.abort()


class HoldUntilBalanced(ConsumerRebalanceListener):  # type: ignore[misc]
    """Pauses the assigned partitions until all three members are there; else the first one would read everything."""

    def __init__(self, consumer: Any, group: DemoGroup, member: str) -> None:
        self.consumer = consumer
        self.group = group
        self.member = member

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.group.shares.pop(self.member, None)

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.group.shares[self.member] = len(assigned)
        self.consumer.pause(*assigned)


def consume_flights(bootstrap: str, expected: int, advance: Callable[[int], None]) -> FlightCounts:
    """Consume until *expected* flights have arrived, or none for half a minute; offsets are committed.

    Raises PipelineError if a member fails.
    """
    group = DemoGroup(bootstrap, FlightCounts(), advance)
    names = [f"member {number}" for number in range(1, MEMBERS + 1)]
    members = [threading.Thread(target=_run_member, args=(group, name)) for name in names]
    for member in members:
        member.start()
    _wait_for_flights(group, expected)
    group.done.set()
    for member in members:
        member.join()
    if group.failures:
        raise PipelineError(f"a consumer failed ({group.failures[0]!r}): see that the broker runs") from group.failures[
            0
        ]
    return group.counts


def _wait_for_flights(group: DemoGroup, expected: int) -> None:
    counts = group.counts
    last, changed_at = 0, time.monotonic()
    while counts.total < expected and time.monotonic() < changed_at + GIVE_UP_SECONDS:
        if group.done.wait(0.1):
            return
        if counts.total != last:
            last, changed_at = counts.total, time.monotonic()


def _run_member(group: DemoGroup, name: str) -> None:
    try:
        _read_flights(group, name)
    except threading.BrokenBarrierError:
        pass  # another member has failed, and its failure is reported
    except Exception as problem:
        group.fail(problem)


def _read_flights(group: DemoGroup, name: str) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=group.bootstrap,
        group_id="demo",
        client_id=name.replace(" ", "-"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=500,
        max_poll_records=5000,
    )
    with closing(consumer):
        consumer.subscribe([TOPIC], listener=HoldUntilBalanced(consumer, group, name))
        while not group.done.is_set():
            if group.is_balanced and consumer.paused():
                consumer.resume(*consumer.paused())
            for records in consumer.poll(timeout_ms=POLL_MS).values():
                group.counts.add(name, [record.key.decode() for record in records])
                group.advance(len(records))
        consumer.commit()
        group.all_committed.wait()  # a member that leaves starts a rebalance, during which the others could not commit
