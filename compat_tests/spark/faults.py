"""Records of producers that number them, with known faults: some dropped, sent twice, overtaken, or late."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from confluent_kafka import Producer

from compat_tests.brokers import Broker

# The identity of a record: its producer, and the number that the producer gave it.
Numbered = tuple[str, int]


@dataclass
class Faults:
    """Records by partition in the order in which they are sent, and their faults."""

    sent: dict[int, list[Numbered]]
    dropped: set[Numbered] = field(default_factory=set)
    doubled: set[Numbered] = field(default_factory=set)
    overtaken: set[Numbered] = field(default_factory=set)

    def all_sent(self) -> list[Numbered]:
        return [record for records in self.sent.values() for record in records]


def make_faults(seed: int, producers: int = 4, count: int = 100, partitions: int = 2) -> Faults:
    """Let each producer number *count* records from 0; the first and the last ones have no fault.

    No two faults touch each other, so that each is the fault that was meant.
    """
    rng = Random(seed)
    faults = Faults({})
    for number in range(producers):
        name = f"producer-{number}"
        places = rng.sample(range(2, count - 3, 4), 9)
        order = list(range(count))
        for place in places[:3]:
            faults.dropped.add((name, place))
            order.remove(place)
        for place in places[3:6]:
            faults.doubled.add((name, place))
            order.insert(order.index(place) + rng.choice((1, 5)), place)
        for place in places[6:]:
            faults.overtaken.add((name, place))
            order.remove(place)
            order.insert(order.index(place + 1) + 1, place)
        faults.sent.setdefault(number % partitions, []).extend((name, place) for place in order)
    return interleave_records(faults, rng)


def interleave_records(faults: Faults, rng: Random) -> Faults:
    """Mix the records of a partition's producers; each keeps its own order."""
    for partition, records in faults.sent.items():
        queues = [[record for record in records if record[0] == name] for name in sorted({name for name, _ in records})]
        faults.sent[partition] = list(_mix_queues(queues, rng))
    return faults


def _mix_queues(queues: list[list[Numbered]], rng: Random) -> Iterator[Numbered]:
    while left := [queue for queue in queues if queue]:
        yield rng.choice(left).pop(0)


def send_records(
    broker: Broker,
    topic: str,
    sent: Mapping[int, Sequence[Numbered]],
    event_ms: Mapping[Numbered, int] | None = None,
    **settings: Any,
) -> None:
    """Produce the records as JSON, with the event times of those that have one."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **settings})
    for partition, records in sent.items():
        produce_records(producer, topic, partition, records, event_ms or {})
    assert producer.flush(60) == 0


def produce_records(
    producer: Producer, topic: str, partition: int, records: Iterable[Numbered], event_ms: Mapping[Numbered, int]
) -> None:
    for name, sequence in records:
        value = {"producer": name, "sequence": sequence, "time": event_ms.get((name, sequence))}
        headers = [("producer", name.encode()), ("sequence", b"%d" % sequence)]
        producer.produce(topic, json.dumps(value), key=name, partition=partition, headers=headers)


def numbers_of_findings(rows: Iterable[Mapping[str, Any]]) -> set[Numbered]:
    """Return the records that the findings of one kind name, which may be ranges."""
    numbered = [(row["producer"], number) for row in rows for number in range(row["first"], row["last"] + 1)]
    assert len(set(numbered)) == len(numbered), "a finding is reported twice"
    return set(numbered)
