"""The two ways to share the partitions of a group out among its members: ``uniform`` and ``range``.

Both are functions of who is subscribed to what and of what each member shall have so far. Whatever they are given,
every partition of a topic with subscribers goes to exactly one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heapreplace
from typing import NamedTuple, TypeAlias

from kafkacompat.groups.consumer.member import Assignment

MOST_ROUNDS = 16
"""How often the topics are gone through in search of a better balance; more is rarely found, and takes its time."""

Shares: TypeAlias = "dict[str, dict[bytes, set[int]]]"


class Subscriber(NamedTuple):
    """A member: the ids of the topics it is subscribed to (that there are), and its target so far."""

    instance_id: str | None
    topic_ids: frozenset[bytes]
    target: Assignment


Subscribers: TypeAlias = "Mapping[str, Subscriber]"
PartitionCounts: TypeAlias = "Mapping[bytes, int]"
Assignor: TypeAlias = "Callable[[Subscribers, PartitionCounts], dict[str, Assignment]]"


# range


def assign_range(subscribers: Subscribers, partition_counts: PartitionCounts) -> dict[str, Assignment]:
    """Split each topic into as many ranges as it has subscribers, the longer ones first.

    Static members come first, in the order of their instance ids, so that they keep theirs.
    """
    order = sorted(subscribers, key=lambda member_id: _place(member_id, subscribers[member_id]))
    shares: Shares = {member_id: {} for member_id in subscribers}
    for topic_id, readers in _readers(order, subscribers).items():
        quota, extra = divmod(partition_counts[topic_id], len(readers))
        first = 0
        for index, member_id in enumerate(readers):
            end = first + quota + (index < extra)
            if end > first:
                shares[member_id][topic_id] = set(range(first, end))
            first = end
    return _frozen(shares)


def _place(member_id: str, subscriber: Subscriber) -> tuple[bool, str]:
    is_dynamic = subscriber.instance_id is None
    return is_dynamic, member_id if subscriber.instance_id is None else subscriber.instance_id


# uniform


def assign_uniform(subscribers: Subscribers, partition_counts: PartitionCounts) -> dict[str, Assignment]:
    """Give every member as many partitions as the others, as far as subscriptions let it, and move few.

    If all are subscribed to the same topics, no two members differ by more than one partition, and only as
    many partitions move as that takes. Otherwise it is as balanced as moving single partitions makes it.
    """
    subscriptions = {subscriber.topic_ids for subscriber in subscribers.values()}
    shares = _kept(subscribers, partition_counts)
    if len(subscriptions) == 1:
        _cut(shares, sum(partition_counts[topic_id] for topic_id in next(iter(subscriptions))))
    readers = _readers(subscribers, subscribers)
    loads = {member_id: _size(share) for member_id, share in shares.items()}
    for topic_id in sorted(
        readers, key=lambda topic_id: (-partition_counts[topic_id] / len(readers[topic_id]), topic_id)
    ):
        _share_rest_out(topic_id, readers[topic_id], partition_counts[topic_id], shares, loads)
    if len(subscriptions) > 1:
        _balance(readers, shares, loads)
    return _frozen(shares)


def _kept(subscribers: Subscribers, partition_counts: PartitionCounts) -> Shares:
    """What members have of what they may have; of a partition that two have, the first one keeps it."""
    taken: set[tuple[bytes, int]] = set()
    shares: Shares = {}
    for member_id, subscriber in subscribers.items():
        share = shares[member_id] = {}
        for topic_id, partitions in subscriber.target.items():
            if topic_id not in subscriber.topic_ids:
                continue
            count = partition_counts[topic_id]
            kept = {each for each in partitions if each < count and (topic_id, each) not in taken}
            if kept:
                share[topic_id] = kept
                taken.update((topic_id, each) for each in kept)
    return shares


def _cut(shares: Shares, total: int) -> None:
    """Take from members what is above their quota; as many as there are partitions left over may have one more."""
    quota, extra = divmod(total, len(shares))
    for share in shares.values():
        surplus = _size(share) - quota
        if surplus > 0 and extra > 0:
            surplus -= 1
            extra -= 1
        for _ in range(surplus):
            _take_from(share, max(share, key=lambda topic_id: len(share[topic_id])))


def _share_rest_out(
    topic_id: bytes, readers: list[str], partition_count: int, shares: Shares, loads: dict[str, int]
) -> None:
    """Give each partition of a topic that nobody has to the reader with the fewest."""
    taken: set[int] = set().union(*(shares[member_id].get(topic_id, ()) for member_id in readers))
    heap = [(loads[member_id], index) for index, member_id in enumerate(readers)]
    heapify(heap)
    for partition in range(partition_count):
        if partition not in taken:
            load, index = heap[0]
            member_id = readers[index]
            shares[member_id].setdefault(topic_id, set()).add(partition)
            loads[member_id] = load + 1
            heapreplace(heap, (load + 1, index))


def _balance(readers: Mapping[bytes, list[str]], shares: Shares, loads: dict[str, int]) -> None:
    """Move single partitions from who has more to who has fewer, until no move makes it better."""
    for _ in range(MOST_ROUNDS):
        moved = [_balance_topic(topic_id, readers[topic_id], shares, loads) for topic_id in sorted(readers)]
        if not any(moved):
            return


def _balance_topic(topic_id: bytes, readers: list[str], shares: Shares, loads: dict[str, int]) -> int:
    moved = 0
    while True:
        poorest = min(readers, key=loads.__getitem__)
        holders = [member_id for member_id in readers if topic_id in shares[member_id]]
        richest = max(holders, key=loads.__getitem__, default=poorest)
        if loads[richest] - loads[poorest] <= 1:
            return moved
        partition = _take_from(shares[richest], topic_id)
        shares[poorest].setdefault(topic_id, set()).add(partition)
        loads[richest] -= 1
        loads[poorest] += 1
        moved += 1


# Both


def _readers(order: Iterable[str], subscribers: Subscribers) -> dict[bytes, list[str]]:
    """By topic, who is subscribed to it."""
    readers: dict[bytes, list[str]] = {}
    for member_id in order:
        for topic_id in subscribers[member_id].topic_ids:
            readers.setdefault(topic_id, []).append(member_id)
    return readers


def _take_from(share: dict[bytes, set[int]], topic_id: bytes) -> int:
    """Take the last partition of a topic out of a share."""
    partition = max(share[topic_id])
    share[topic_id].remove(partition)
    if not share[topic_id]:
        del share[topic_id]
    return partition


def _size(share: Mapping[bytes, set[int]]) -> int:
    return sum(map(len, share.values()))


def _frozen(shares: Shares) -> dict[str, Assignment]:
    return {
        member_id: {topic_id: frozenset(partitions) for topic_id, partitions in share.items()}
        for member_id, share in shares.items()
    }


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
