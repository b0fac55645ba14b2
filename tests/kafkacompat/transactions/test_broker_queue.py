"""One request to a broker at a time, with everything that fits."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.transactions.broker_queue import MOST_PARTITIONS, BrokerQueue


@dataclass
class Entry:
    """An entry of the queue."""

    key: str
    partition_count: int = 1


class World:
    def __init__(self) -> None:
        self.batches: list[list[Entry]] = []
        self.under_way: list[Deferred[None]] = []
        self.queue: BrokerQueue[Entry] = BrokerQueue(self.send)

    def send(self, batch: list[Entry]) -> Deferred[None]:
        self.batches.append(batch)
        self.under_way.append(Deferred())
        return self.under_way[-1]

    def add(self, *entries: Entry) -> None:
        for entry in entries:
            self.queue.add(entry)

    def answer(self) -> None:
        self.under_way.pop().callback(None)

    def keys(self) -> list[str]:
        """The keys of each request, as one word."""
        return ["".join(entry.key for entry in batch) for batch in self.batches]


def test_one_request_is_under_way_at_a_time() -> None:
    world = World()
    world.add(*map(Entry, "abc"))
    assert world.keys() == ["a"]
    world.answer()
    assert world.keys() == ["a", "bc"]
    world.answer()
    world.add(Entry("d"))
    assert world.keys() == ["a", "bc", "d"]


def test_a_request_has_each_key_once_and_the_others_keep_their_order() -> None:
    world = World()
    world.add(*map(Entry, "abbcbc"))
    while world.under_way:
        world.answer()
    assert world.keys() == ["a", "bc", "bc", "b"]


@pytest.mark.parametrize(
    ("sizes", "requests"),
    [
        ([MOST_PARTITIONS, 1], ["b", "c"]),
        ([MOST_PARTITIONS - 1, 1], ["bc"]),
        ([MOST_PARTITIONS + 5, 1], ["b", "c"]),
        ([1, MOST_PARTITIONS, 1], ["bd", "c"]),
    ],
)
def test_a_request_has_a_bounded_number_of_partitions(sizes: list[int], requests: list[str]) -> None:
    world = World()
    world.add(Entry("a"), *(Entry(key, size) for key, size in zip("bcd", sizes, strict=False)))
    while world.under_way:
        world.answer()
    assert world.keys() == ["a", *requests]
