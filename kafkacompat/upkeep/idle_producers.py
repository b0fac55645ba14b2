"""Forgetting idle producers: after a time, and above a number of producers those that have been idle for longest.

All functions go through the producers of all partitions in groups, since there may be a million.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kafkacompat.storage.producers.producer import unpack_last_timestamp
from kafkacompat.timers import Clock, now_ms, yield_unhurried

if TYPE_CHECKING:
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.partitions.replica_manager import ReplicaManager

GROUP_SIZE = 500
"""Producers of one partition that are checked together."""

GROUPS_PER_TURN = 10
"""Groups that are checked in one turn of the reactor."""

SAMPLES = 10_000
"""Producers, spread evenly over all, whose idle times stand for those of all."""

SPARE_SHARE = 20
"""One in this many of the allowed producers is forgotten beyond the excess, so that the next run has nothing to do."""

MOST_GUARDS = 100_000
"""Guards whose batches never came, in all partitions together; some 15 MB."""

LEAST_GUARDS = 100
"""Guards that a partition keeps in any case: their coordinators may be about to answer."""


class IdleProducers:
    """The producers of all partitions; after `bound` at most ``most`` pairs of partition and producer id are left."""

    def __init__(self, clock: Clock, replicas: ReplicaManager, most: int) -> None:
        self._clock = clock
        self._replicas = replicas
        self._most = most

    def _group_producers(self) -> Iterator[tuple[Partition, list[int]]]:
        for partition in list(self._replicas):
            ids = list(partition.log.producer_state.producers)
            for start in range(0, len(ids), GROUP_SIZE):
                yield partition, ids[start : start + GROUP_SIZE]

    async def forget_expired(self) -> None:
        """Forget the producers that have been idle for producer.id.expiration.ms."""
        async for partition, ids in yield_unhurried(self._clock, self._group_producers(), GROUPS_PER_TURN):
            since_ms = now_ms(self._clock) - partition.log.config.producer_id_expiration_ms
            partition.log.producer_state.remove_idle(ids, since_ms)

    async def forget_excess(self) -> None:
        """Where there are too many producers, forget those idle for longest that have no open transaction."""
        total = guards = 0
        async for partition in yield_unhurried(self._clock, list(self._replicas)):
            total += len(partition.log.producer_state)
            guards += len(partition.log.producer_state.verifications)
        if guards > MOST_GUARDS:
            await self._bound_guards()
        excess = total - self._most
        if excess <= 0:
            return
        excess = min(excess + self._most // SPARE_SHARE, total)
        since_ms = await self._find_idle_since(excess / total, max(1, total // SAMPLES))
        async for partition, ids in yield_unhurried(self._clock, self._group_producers(), GROUPS_PER_TURN):
            excess -= partition.log.producer_state.remove_idle(ids[:excess], since_ms)
            if excess <= 0:
                return

    async def _bound_guards(self) -> None:
        partitions = list(self._replicas)
        share = max(LEAST_GUARDS, MOST_GUARDS // max(1, len(partitions)))
        async for partition in yield_unhurried(self._clock, partitions):
            partition.log.producer_state.verifications.keep_newest(share)

    async def _find_idle_since(self, share: float, step: int) -> int:
        """Return the time (ms) since which that share of producers sent nothing, by a sample of every *step*-th."""
        times: list[int] = []
        passed_count = 0
        async for partition, ids in yield_unhurried(self._clock, self._group_producers(), GROUPS_PER_TURN):
            packed = partition.log.producer_state.producers.packed
            for producer_id in islice(ids, -passed_count % step, None, step):
                if data := packed.get(producer_id):
                    times.append(unpack_last_timestamp(data))
            passed_count += len(ids)
        times.sort()
        return times[min(int(len(times) * share), len(times) - 1)] if times else -1
