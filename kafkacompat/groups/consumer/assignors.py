"""The two assignors of consumer groups: ``uniform`` and ``range``.

Both are functions of the members' subscriptions and of their targets so far. They assign every partition of a topic that has
subscribers to exactly one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import chain
from typing import NamedTuple, TypeAlias

from kafkacompat.groups.consumer.member import Assignment, count_partitions

MAX_ROUNDS = 16
"""Maximum rounds over all topics in search of a better balance. More rounds rarely find one."""

MAX_READER_CHECKS = 500_000
"""Maximum readers of topics that all rounds after the first one check together, in about 50 ms."""

Shares: TypeAlias = "dict[str, dict[bytes, set[int]]]"


class Subscriber(NamedTuple):
    """A member: the ids of the existing topics that it is subscribed to, and its target so far."""

    instance_id: str | None
    topic_ids: frozenset[bytes]
    target: Assignment


Subscribers: TypeAlias = "Mapping[str, Subscriber]"
PartitionCounts: TypeAlias = "Mapping[bytes, int]"
Assignor: TypeAlias = "Callable[[Subscribers, PartitionCounts], dict[str, Assignment]]"


# Readers


class _ReaderGroup(NamedTuple):
    """The topics that have the same readers, so that work for all of the readers is not repeated for each topic."""

    readers: list[str]
    topic_ids: frozenset[bytes]


def _group_readers(subscribers: Subscribers) -> list[_ReaderGroup]:
    """Return reader groups such that every topic is in one. There are few: most members of a group have the same subscription."""
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
        _ReaderGroup(list(chain.from_iterable(readers[number] for number in numbers)), frozenset(topics[numbers]))
        for numbers in sorted(topics)
    ]


# range


def assign_range(subscribers: Subscribers, partition_counts: PartitionCounts) -> dict[str, Assignment]:
    """Split each topic into one range for each subscriber, the longer ranges first.

    Static members come first, in the order of their instance ids, so that they keep their ranges.
    """
    shares: Shares = {member_id: {} for member_id in subscribers}
    for reader_group in _group_readers(subscribers):
        readers = sorted(reader_group.readers, key=lambda member_id: _sort_key(member_id, subscribers[member_id]))
        for topic_id in sorted(reader_group.topic_ids):
            quota, extra = divmod(partition_counts[topic_id], len(readers))
            first = 0
            # If there are fewer partitions than readers, the last readers get none.
            for index, member_id in enumerate(readers[: partition_counts[topic_id]]):
                end = first + quota + (index < extra)
                shares[member_id][topic_id] = set(range(first, end))
                first = end
    return _freeze_shares(shares)


def _sort_key(member_id: str, subscriber: Subscriber) -> tuple[bool, str]:
    is_dynamic = subscriber.instance_id is None
    return is_dynamic, member_id if subscriber.instance_id is None else subscriber.instance_id


# uniform


def assign_uniform(subscribers: Subscribers, partition_counts: PartitionCounts) -> dict[str, Assignment]:
    """Balance the numbers of partitions as far as the subscriptions allow, and move few partitions.

    If all members have the same subscription, their numbers differ by one at most, and no more partitions move than that needs.
    Otherwise the result is as balanced as moving single partitions makes it.
    """
    reader_groups = _group_readers(subscribers)
    shares, taken = _keep_valid(subscribers, partition_counts)
    if len(reader_groups) == 1:
        only = reader_groups[0]
        total = sum(partition_counts[topic_id] for topic_id in only.topic_ids)
        _cut_to_quota([shares[member_id] for member_id in only.readers], total, taken)
    loads = {member_id: count_partitions(share) for member_id, share in shares.items()}
    _assign_rest(reader_groups, partition_counts, taken, shares, loads)
    if len(reader_groups) > 1:
        _balance_shares(reader_groups, shares, loads)
    return _freeze_shares(shares)


def _keep_valid(subscribers: Subscribers, partition_counts: PartitionCounts) -> tuple[Shares, dict[bytes, set[int]]]:
    """Return the partitions that members keep, and by topic id all kept partitions. If two members have one, the first keeps it."""
    taken: dict[bytes, set[int]] = {}
    shares: Shares = {}
    for member_id, subscriber in subscribers.items():
        share = shares[member_id] = {}
        for topic_id, partitions in subscriber.target.items():
            if topic_id not in subscriber.topic_ids:
                continue
            of_others, end = taken.setdefault(topic_id, set()), partition_counts[topic_id]
            kept = {partition for partition in partitions if partition < end and partition not in of_others}
            if kept:
                share[topic_id] = kept
                of_others |= kept
    return shares, taken


def _cut_to_quota(shares: Sequence[dict[bytes, set[int]]], total: int, taken: Mapping[bytes, set[int]]) -> None:
    """Take away partitions above the quota, *total* by members. If that leaves a remainder, this many members may keep one more."""
    quota, extra = divmod(total, len(shares))
    for share in shares:
        surplus = count_partitions(share) - quota
        if surplus > 0 and extra > 0:
            surplus -= 1
            extra -= 1
        if surplus > 0:
            _take_away(share, surplus, taken)


def _take_away(share: dict[bytes, set[int]], surplus: int, taken: Mapping[bytes, set[int]]) -> None:
    """Take away *surplus* partitions, of the topics that the share has most partitions of."""
    largest = [(-len(partitions), topic_id) for topic_id, partitions in share.items()]
    heapify(largest)
    for _ in range(surplus):
        size, topic_id = largest[0]
        taken[topic_id].remove(_take_from(share, topic_id))
        heapreplace(largest, (size + 1, topic_id))


def _assign_rest(
    reader_groups: Sequence[_ReaderGroup],
    partition_counts: PartitionCounts,
    taken: Mapping[bytes, set[int]],
    shares: Shares,
    loads: dict[str, int],
) -> None:
    """Assign each free partition to the reader with the fewest. Topics with the most partitions per reader come first."""
    topics = [
        (-partition_counts[topic_id] / len(reader_group.readers), topic_id, number)
        for number, reader_group in enumerate(reader_groups)
        for topic_id in reader_group.topic_ids
    ]
    queues = [_Queue(reader_group.readers, loads) for reader_group in reader_groups]
    for _, topic_id, number in sorted(topics):
        queue = queues[number]
        for partition in sorted(set(range(partition_counts[topic_id])) - taken.get(topic_id, set())):
            shares[queue.serve()].setdefault(topic_id, set()).add(partition)


class _Queue:
    """Members, the one with the fewest partitions first. Several queues share ``loads``, whose numbers may only grow."""

    def __init__(self, members: Sequence[str], loads: dict[str, int]) -> None:
        self._members = members
        self._loads = loads
        self._noted = [(loads[member_id], index) for index, member_id in enumerate(members)]
        heapify(self._noted)

    def serve(self) -> str:
        """Return the first member, and count one more partition for it."""
        while True:
            noted, index = self._noted[0]
            member_id = self._members[index]
            load = self._loads[member_id]
            if load == noted:
                self._loads[member_id] = load + 1
                heapreplace(self._noted, (load + 1, index))
                return member_id
            heapreplace(self._noted, (load, index))


def _balance_shares(reader_groups: Sequence[_ReaderGroup], shares: Shares, loads: dict[str, int]) -> None:
    """Move single partitions from members with more to members with fewer, until no move improves the balance."""
    checks_a_round = sum(len(reader_group.readers) for reader_group in reader_groups)
    for _ in range(min(MAX_ROUNDS, 1 + MAX_READER_CHECKS // checks_a_round)):
        moves = [_balance_reader_group(reader_group, shares, loads) for reader_group in reader_groups]
        if not any(moves):
            return


def _balance_reader_group(reader_group: _ReaderGroup, shares: Shares, loads: dict[str, int]) -> int:
    """Balance the readers of one reader group. Returns how many partitions moved.

    A member that gave a partition still has more than those with the fewest, and a member that got one is still among these. So
    an outdated place in the other heap does no harm.
    """
    readers, moved = reader_group.readers, 0
    poor = [(loads[member_id], index) for index, member_id in enumerate(readers)]
    if max(poor)[0] - min(poor)[0] <= 1:
        return 0
    rich = [(-load, index) for load, index in poor]
    heapify(poor)
    heapify(rich)
    while rich and -rich[0][0] - poor[0][0] > 1:
        share = shares[giver := readers[rich[0][1]]]
        topic_id = next((candidate for candidate in share if candidate in reader_group.topic_ids), None)
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


# Shares


def _take_from(share: dict[bytes, set[int]], topic_id: bytes) -> int:
    """Remove some partition of a topic from a share, and return it."""
    partition = share[topic_id].pop()
    if not share[topic_id]:
        del share[topic_id]
    return partition


def _freeze_shares(shares: Shares) -> dict[str, Assignment]:
    return {
        member_id: {topic_id: frozenset(partitions) for topic_id, partitions in share.items()}
        for member_id, share in shares.items()
    }


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
