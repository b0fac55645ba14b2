"""Which partitions of this broker belong to which instance, and what each instance stores here.

Each instance has a `StorageAccount`, which its partitions keep up to date by themselves. Only a change of instances goes through all
partitions, in turns of the reactor; it also applies the instance's bounds of topic configs to their logs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.tenancy.capacity import StorageAccount
from kafkacompat.timers import Clock, yield_in_turns
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.config.instances import Instance
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.tenancy.registry import Instances

log = logging.getLogger(__name__)


class PartitionCounts:
    """What passed through partitions of one instance: bytes of batches and records, since the broker has followed the instance."""

    __slots__ = ("fetched_bytes", "produced_bytes", "produced_records")

    def __init__(self) -> None:
        self.produced_bytes = self.produced_records = self.fetched_bytes = 0

    def add(self, partition: Partition, sign: int = 1) -> None:
        """Add, or with a *sign* of -1 subtract, the present counters of a partition."""
        traffic = partition.traffic
        traffic.update(partition.log)
        self.produced_bytes += sign * traffic.led_bytes
        self.produced_records += sign * traffic.led_records
        self.fetched_bytes += sign * traffic.sent_bytes


class InstancePartitions:
    """The partitions of one instance on this broker."""

    def __init__(self, instance: Instance) -> None:
        self.account = StorageAccount(instance)
        self.bounds = instance.topic_bounds
        self.partitions: dict[tuple[str, int], Partition] = {}
        self._gone = PartitionCounts()
        """The counters of partitions that the broker no longer has, less those that partitions began with."""

    def attach(self, partition: Partition) -> None:
        """Count a partition from now on."""
        self.partitions[partition.topic, partition.index] = partition
        partition.state.use_account(self.account)
        self._gone.add(partition, -1)

    def detach(self, partition: Partition) -> None:
        """Count a partition no longer; what has passed through it stays counted."""
        if self.partitions.pop((partition.topic, partition.index), None) is not None:
            partition.state.use_account(None)
            self._gone.add(partition)

    def count_led(self) -> int:
        """Return how many partitions the broker leads."""
        return sum(partition.is_leader for partition in self.partitions.values())

    def count_topics(self) -> int:
        """Return how many topics have a partition on the broker."""
        return len({topic for topic, _ in self.partitions})

    def measure(self) -> PartitionCounts:
        """Return what has passed through all partitions so far."""
        counts = PartitionCounts()
        counts.produced_bytes = self._gone.produced_bytes
        counts.produced_records = self._gone.produced_records
        counts.fetched_bytes = self._gone.fetched_bytes
        for partition in self.partitions.values():
            counts.add(partition)
        return counts


class InstanceStorage:
    """The accounts of all instances on this broker, by name; follows instances and partitions."""

    def __init__(self, instances: Instances, replicas: ReplicaManager, clock: Clock) -> None:
        self.by_name: dict[str, InstancePartitions] = {}
        self._instances = instances
        self._replicas = replicas
        self._clock = clock
        self._owners: dict[Partition, InstancePartitions] = {}
        self._round = 0

    def start(self) -> None:
        """Count from now on."""
        self._replicas.on_opened = self._attach
        self._replicas.on_closing = self._detach
        self.update()

    def __iter__(self) -> Iterator[tuple[str, InstancePartitions]]:
        return iter(self.by_name.items())

    def find_account(self, name: str) -> StorageAccount | None:
        """Return the account of an instance; None if there is no such instance."""
        found = self.by_name.get(name)
        return None if found is None else found.account

    def update(self) -> Deferred[None]:
        """Follow a change of instances; fires when every partition has the account of its instance."""
        views = self._instances.by_name
        for name, view in views.items():
            known = self.by_name.get(name)
            if known is None:
                self.by_name[name] = InstancePartitions(view.instance)
            else:
                known.account.configure(view.instance)
                known.bounds = view.instance.topic_bounds
        for name in self.by_name.keys() - views.keys():
            del self.by_name[name]
        self._round += 1
        return Deferred.fromCoroutine(self._attach_all(self._round))

    async def _attach_all(self, update: int) -> None:
        async for partition in yield_in_turns(self._clock, list(self._replicas)):
            if update != self._round:
                return
            if not partition.closed:
                self._attach(partition)

    def _attach(self, partition: Partition) -> None:
        view = self._instances.find_owner(entities.TOPIC, partition.topic)
        wanted = None if view is None else self.by_name.get(view.name)
        known = self._owners.get(partition)
        if wanted is not known:
            if known is not None:
                self._detach(partition)
            if wanted is not None:
                self._owners[partition] = wanted
                wanted.attach(partition)
        elif wanted is None:
            return
        # The account may count other replicas than before, and the bounds may be others.
        partition.state.count_bytes()
        self._replicas.reconfigure(partition)

    def _detach(self, partition: Partition) -> None:
        owner = self._owners.pop(partition, None)
        if owner is not None:
            owner.detach(partition)
