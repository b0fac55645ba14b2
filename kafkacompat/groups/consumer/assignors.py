"""The two ways to share the partitions of a group out among its members: ``uniform`` and ``range``.

Both are functions of who is subscribed to what and of what each member shall have so far. Whatever they are given,
every partition of a topic with subscribers goes to exactly one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import chain
from typing import NamedTuple, TypeAlias

from kafkacompat.groups.consumer.member import Assignment, count

MOST_ROUNDS = 16
"""How often all topics are gone through in search of a better balance; more is rarely found, and takes its time."""

MOST_LOOKS = 500_000
"""How many readers of topics are looked at in all these rounds, but for the first one: about as many as in 50 ms."""

Shares: TypeAlias = "dict[str, dict[bytes, set[int]]]"


class Subscriber(NamedTuple):
    """A member: the ids of the topics it is subscribed to (that there are), and its target so far."""

    instance_id: str | None
    topic_ids: frozenset[bytes]
    target: Assignment


Subscribers: TypeAlias = "Mapping[str, Subscriber]"
PartitionCounts: TypeAlias = "Mapping[bytes, int]"
Assignor: TypeAlias = "Callable[[Subscribers, PartitionCounts], dict[str, Assignment]]"


# Who reads what


class _Circle(NamedTuple):
    """The readers of the same topics: what is done for all of them need not be done for each topic."""

    readers: list[str]
    topic_ids: frozenset[bytes]


def _circles(subscribers: Subscribers) -> list[_Circle]:
    """Every topic in one circle. There are few of them, as most members of most groups are subscribed to the same."""
    members: dict[frozenset[bytes], list[str]] = {}
    for member_id, subscriber in subscribers.items():
        members.setdefault(subscriber.topic_ids, []).append(member_id)
    named_in: dict[bytes, list[int]] = {}
    for number, topic_ids in enumerate(members):
        for topic_id in topic_ids:
            named_in.setdefault(topic_id, []).append(number)
    topics: dict[tuple[int, ...], list[bytes]] = {}
    for topic_id, numbers in named_in.items():
        topics.setdefault(tuple(numbers), []).append(topic_id)
    readers = list(members.values())
    return [
        _Circle(list(chain.from_iterable(readers[number] for number in numbers)), frozenset(topics[numbers]))
        for numbers in sorted(topics)
    ]


# range


def assign_range(subscribers: Subscribers, partition_counts: PartitionCounts) -> dict[str, Assignment]:
    """Split each topic into as many ranges as it has subscribers, the longer ones first.

    Static members come first, in the order of their instance ids, so that they keep theirs.
    """
    shares: Shares = {member_id: {} for member_id in subscribers}
    for circle in _circles(subscribers):
        readers = sorted(circle.readers, key=lambda member_id: _place(member_id, subscribers[member_id]))
        for topic_id in sorted(circle.topic_ids):
            quota, extra = divmod(partition_counts[topic_id], len(readers))
            first = 0
            # If there are fewer partitions than readers, the others have none.
            for index, member_id in enumerate(readers[: partition_counts[topic_id]]):
                end = first + quota + (index < extra)
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
    circles = _circles(subscribers)
    shares, taken = _kept(subscribers, partition_counts)
    if len(circles) == 1:
        only = circles[0]
        total = sum(partition_counts[topic_id] for topic_id in only.topic_ids)
        _cut([shares[member_id] for member_id in only.readers], total, taken)
    loads = {member_id: count(share) for member_id, share in shares.items()}
    _share_rest_out(circles, partition_counts, taken, shares, loads)
    if len(circles) > 1:
        _balance(circles, shares, loads)
    return _frozen(shares)


def _kept(subscribers: Subscribers, partition_counts: PartitionCounts) -> tuple[Shares, dict[bytes, set[int]]]:
    """What members have of what they may have, and all that of each topic; of a partition that two have, the first keeps it."""
    taken: dict[bytes, set[int]] = {}
    shares: Shares = {}
    for member_id, subscriber in subscribers.items():
        share = shares[member_id] = {}
        for topic_id, partitions in subscriber.target.items():
            if topic_id not in subscriber.topic_ids:
                continue
            of_others, end = taken.setdefault(topic_id, set()), partition_counts[topic_id]
            kept = {each for each in partitions if each < end and each not in of_others}
            if kept:
                share[topic_id] = kept
                of_others |= kept
    return shares, taken


def _cut(shares: Sequence[dict[bytes, set[int]]], total: int, taken: Mapping[bytes, set[int]]) -> None:
    """Take from members what is above their quota; as many as there are partitions left over may have one more."""
    quota, extra = divmod(total, len(shares))
    for share in shares:
        surplus = count(share) - quota
        if surplus > 0 and extra > 0:
            surplus -= 1
            extra -= 1
        if surplus > 0:
            _take_away(share, surplus, taken)


def _take_away(share: dict[bytes, set[int]], surplus: int, taken: Mapping[bytes, set[int]]) -> None:
    """Take partitions of those topics that the share has most of."""
    largest = [(-len(partitions), topic_id) for topic_id, partitions in share.items()]
    heapify(largest)
    for _ in range(surplus):
        size, topic_id = largest[0]
        taken[topic_id].remove(_take_from(share, topic_id))
        heapreplace(largest, (size + 1, topic_id))


def _share_rest_out(
    circles: Sequence[_Circle],
    partition_counts: PartitionCounts,
    taken: Mapping[bytes, set[int]],
    shares: Shares,
    loads: dict[str, int],
) -> None:
    """Give each partition that is not taken to the reader with the fewest; topics with most for each reader come first."""
    topics = [
        (-partition_counts[topic_id] / len(circle.readers), topic_id, number)
        for number, circle in enumerate(circles)
        for topic_id in circle.topic_ids
    ]
    queues = [_Queue(circle.readers, loads) for circle in circles]
    for _, topic_id, number in sorted(topics):
        queue = queues[number]
        for partition in sorted(set(range(partition_counts[topic_id])) - taken.get(topic_id, set())):
            shares[queue.serve()].setdefault(topic_id, set()).add(partition)


class _Queue:
    """Members, the one with the fewest partitions first. ``loads``, which others count in as well, may only grow."""

    def __init__(self, members: Sequence[str], loads: dict[str, int]) -> None:
        self._members = members
        self._loads = loads
        self._noted = [(loads[member_id], index) for index, member_id in enumerate(members)]
        heapify(self._noted)

    def serve(self) -> str:
        """The first one, which has one partition more from now on."""
        while True:
            noted, index = self._noted[0]
            member_id = self._members[index]
            load = self._loads[member_id]
            if load == noted:
                self._loads[member_id] = load + 1
                heapreplace(self._noted, (load + 1, index))
                return member_id
            heapreplace(self._noted, (load, index))


def _balance(circles: Sequence[_Circle], shares: Shares, loads: dict[str, int]) -> None:
    """Move single partitions from who has more to who has fewer, until no move makes it better."""
    looks = sum(len(circle.readers) for circle in circles)
    for _ in range(min(MOST_ROUNDS, 1 + MOST_LOOKS // looks)):
        moves = [_balance_circle(circle, shares, loads) for circle in circles]
        if not any(moves):
            return


def _balance_circle(circle: _Circle, shares: Shares, loads: dict[str, int]) -> int:
    """Even out among readers of the same topics; tells how many partitions moved.

    Who gave something stays above those with the fewest, and who got something among these, so that neither's place in
    the other heap matters any more.
    """
    readers, moved = circle.readers, 0
    poor = [(loads[member_id], index) for index, member_id in enumerate(readers)]
    if max(poor)[0] - min(poor)[0] <= 1:
        return 0
    rich = [(-load, index) for load, index in poor]
    heapify(poor)
    heapify(rich)
    while rich and -rich[0][0] - poor[0][0] > 1:
        share = shares[giver := readers[rich[0][1]]]
        topic_id = next((each for each in share if each in circle.topic_ids), None)
        if topic_id is None:
            heappop(rich)
            continue
        taker = readers[poor[0][1]]
        shares[taker].setdefault(topic_id, set()).add(_take_from(share, topic_id))
        loads[giver] -= 1
        loads[taker] += 1
        heapreplace(rich, (-loads[giver], rich[0][1]))
        heapreplace(poor, (loads[taker], poor[0][1]))
        moved += 1
    return moved


# Both


def _take_from(share: dict[bytes, set[int]], topic_id: bytes) -> int:
    """Take a partition of a topic out of a share."""
    partition = share[topic_id].pop()
    if not share[topic_id]:
        del share[topic_id]
    return partition


def _frozen(shares: Shares) -> dict[str, Assignment]:
    return {
        member_id: {topic_id: frozenset(partitions) for topic_id, partitions in share.items()}
        for member_id, share in shares.items()
    }


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
