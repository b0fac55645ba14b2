"""Forgetting producers: those that have been idle for long, and beyond a number those that have been idle for longest.

Everything goes through the producers of all partitions a few at a time, for there may be a million.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kafkacompat.storage.producers.producer import last_timestamp
from kafkacompat.timers import Clock, now_ms, unhurried

if TYPE_CHECKING:
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.partitions.replica_manager import ReplicaManager

TOGETHER = 500
"""So many producers of one partition are looked at together, ..."""

IN_A_TURN = 10
"""... and so many such groups before everybody else has a turn."""

SAMPLES = 10_000
"""So many producers, spread over all, tell how long the others have been idle."""

ROOM = 20
"""One part in so many is made room for, so that it lasts for a while."""

MOST_GUARDS = 100_000
"""So many guards of producers that never came back may be in all partitions together, some 15 MB."""

LEAST_GUARDS = 100
"""So many a partition keeps in any case: coordinators may be about to answer."""


class IdleProducers:
    """The producers of all partitions; of (partition, producer id) pairs at most ``most`` are kept when `bound` has run."""

    def __init__(self, clock: Clock, replicas: ReplicaManager, most: int) -> None:
        self._clock = clock
        self._replicas = replicas
        self._most = most

    def _groups(self) -> Iterator[tuple[Partition, list[int]]]:
        for partition in list(self._replicas):
            ids = list(partition.log.producer_state.producers)
            for start in range(0, len(ids), TOGETHER):
                yield partition, ids[start : start + TOGETHER]

    async def expire(self) -> None:
        """Forget those that have been idle for producer.id.expiration.ms."""
        async for partition, ids in unhurried(self._clock, self._groups(), IN_A_TURN):
            since_ms = now_ms(self._clock) - partition.log.config.producer_id_expiration_ms
            partition.log.producer_state.remove_idle(ids, since_ms)

    async def bound(self) -> None:
        """Where there are too many, forget those that have been idle for longest and have no transaction open."""
        total = guards = 0
        async for partition in unhurried(self._clock, list(self._replicas)):
            total += len(partition.log.producer_state)
            guards += len(partition.log.producer_state.verifications)
        if guards > MOST_GUARDS:
            await self._bound_guards()
        excess = total - self._most
        if excess <= 0:
            return
        excess = min(excess + self._most // ROOM, total)
        since_ms = await self._idle_since(excess / total, max(1, total // SAMPLES))
        async for partition, ids in unhurried(self._clock, self._groups(), IN_A_TURN):
            excess -= partition.log.producer_state.remove_idle(ids[:excess], since_ms)
            if excess <= 0:
                return

    async def _bound_guards(self) -> None:
        partitions = list(self._replicas)
        share = max(LEAST_GUARDS, MOST_GUARDS // max(1, len(partitions)))
        async for partition in unhurried(self._clock, partitions):
            partition.log.producer_state.verifications.keep(share)

    async def _idle_since(self, share: float, step: int) -> int:
        """The time (ms) after which that share of all producers sent nothing."""
        times: list[int] = []
        passed = 0
        async for partition, ids in unhurried(self._clock, self._groups(), IN_A_TURN):
            packed = partition.log.producer_state.producers.packed
            for producer_id in islice(ids, -passed % step, None, step):
                if data := packed.get(producer_id):
                    times.append(last_timestamp(data))
            passed += len(ids)
        times.sort()
        return times[min(int(len(times) * share), len(times) - 1)] if times else -1
