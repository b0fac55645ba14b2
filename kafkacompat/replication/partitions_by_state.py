"""The partitions that a fetcher follows, by the states of their fetches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from itertools import count, islice
from typing import TYPE_CHECKING

from kafkacompat.replication.fetch_state import DELAYED, FETCHING, OUT_OF_RANGE, TRUNCATING, FetchState

if TYPE_CHECKING:
    from kafkacompat.replication.followed_partition import FollowedPartition
    from kafkacompat.replication.follower import PartitionKey


class PartitionsByState:
    """The partitions of each state, in the order of their turns; ``lagging`` has those that are fetched and not in sync."""

    def __init__(self) -> None:
        self.lagging: set[PartitionKey] = set()
        self._partitions: dict[PartitionKey, FollowedPartition] = {}
        self._members: dict[FetchState, dict[PartitionKey, FollowedPartition]] = {
            TRUNCATING: {},
            FETCHING: {},
            OUT_OF_RANGE: {},
        }
        self._delays: list[tuple[float, int, FollowedPartition]] = []
        self._delay_numbers = count()

    def __len__(self) -> int:
        return len(self._partitions)

    def add(self, followed: FollowedPartition) -> None:
        """Add a partition, which takes the place of another one of its name; `place` files it."""
        self._partitions[followed.key] = followed

    def remove(self, followed: FollowedPartition) -> None:
        """Remove a partition."""
        del self._partitions[followed.key]
        for members in self._members.values():
            members.pop(followed.key, None)
        self.lagging.discard(followed.key)

    def clear(self) -> None:
        """Remove all."""
        self._partitions.clear()
        for members in self._members.values():
            members.clear()

    def place(self, followed: FollowedPartition, *, is_last: bool = True) -> None:
        """File a partition under its new state as the last one. Without *is_last* a partition that is there already keeps its place."""
        key, state = followed.key, followed.fetch.state
        if state is FETCHING and not followed.fetch.is_in_sync:
            self.lagging.add(key)
        else:
            self.lagging.discard(key)
        if not is_last and key in self._members.get(state, ()):
            return
        for members in self._members.values():
            members.pop(key, None)
        if state in self._members:
            self._members[state][key] = followed
        elif state is DELAYED:
            heappush(self._delays, (followed.fetch.delayed_until_s, next(self._delay_numbers), followed))

    def find(self, state: FetchState) -> Mapping[PartitionKey, FollowedPartition]:
        """Return the partitions that fetch, or that truncate, or that are out of range, by their keys."""
        return self._members[state]

    def list_first(self, state: FetchState, most: int) -> list[FollowedPartition]:
        """List the first partitions of a state, at most *most*."""
        return list(islice(self._members[state].values(), most))

    def has(self, followed: FollowedPartition) -> bool:
        """Return whether a partition is still followed."""
        return self._partitions.get(followed.key) is followed

    def is_in(self, followed: FollowedPartition, state: FetchState) -> bool:
        """Return whether a partition is still followed, and in this state."""
        return followed.fetch.state is state and self.has(followed)

    @property
    def next_delay_end_s(self) -> float | None:
        """When the first delay ends; None if no partition is delayed."""
        return self._delays[0][0] if self._delays else None

    def pop_delayed(self, now_s: float) -> Iterator[FollowedPartition]:
        """Take out the partitions whose delays are over; some may have left the state since, or may be delayed again."""
        while self._delays and self._delays[0][0] <= now_s:
            yield heappop(self._delays)[2]
