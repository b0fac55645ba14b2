"""Which partitions of this broker belong to which instance, and what each instance stores here.

Each instance has a `StorageAccount`, which its partitions keep up to date by themselves. Only a change of instances that concerns
topics goes through all partitions, in turns of the reactor. It also applies the bounds of topic configs to the logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.tenancy.capacity import StorageAccount
from kafkacompat.timers import Clock, yield_in_turns
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.config.instances import Instance
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.tenancy.registry import Instances

MOST_PREFIXES = 20
"""Finding the instance of a topic takes less time than to compare it with more prefixes."""


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


class TopicNames(NamedTuple):
    """The physical names of an instance's topics: those with its prefix, and the adopted ones."""

    prefix: str
    adopted: frozenset[str]

    @classmethod
    def of(cls, instance: Instance) -> TopicNames:
        """Return the names of an instance."""
        return cls(instance.prefix, instance.list_adopted(entities.TOPIC))


class InstancePartitions:
    """The partitions of one instance on this broker."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.account = StorageAccount(instance)
        self.names = TopicNames.of(instance)
        self._bounds = instance.topic_bounds
        self.partitions: dict[tuple[str, int], Partition] = {}
        self._gone = PartitionCounts()
        """The counters of partitions that the broker no longer has, less those that partitions began with."""

    def configure(self, instance: Instance) -> bool:
        """Use other properties from now on; return whether the partitions must be counted or configured anew."""
        if instance is self.instance:
            return False
        before = self.names, self._bounds, self.account.counts_replicas
        self.instance = instance
        self.account.configure(instance)
        self.names, self._bounds = TopicNames.of(instance), instance.topic_bounds
        return before != (self.names, self._bounds, self.account.counts_replicas)

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

    def start(self) -> None:
        """Count from now on."""
        self._replicas.on_opened = self._attach
        self._replicas.on_closing = self._detach
        self.update(self._instances.by_name)

    @property
    def has_limits(self) -> bool:
        """Whether any instance has a limit."""
        return any(partitions.account.has_limit for partitions in self.by_name.values())

    def measure_limited(self) -> dict[str, int]:
        """Return the stored bytes of the instances that have a limit and partitions on this broker, by name."""
        return {
            name: partitions.account.stored_bytes
            for name, partitions in self.by_name.items()
            if partitions.partitions and partitions.account.has_limit
        }

    def note_total(self, instance: str, total_bytes: int, reported_bytes: int) -> None:
        """Note the bytes on all brokers, to which this broker had reported *reported_bytes*."""
        account = self.find_account(instance)
        if account is not None:
            account.note_total(total_bytes, reported_bytes)

    def find_account(self, name: str) -> StorageAccount | None:
        """Return the account of an instance; None if there is no such instance."""
        partitions = self.by_name.get(name)
        return None if partitions is None else partitions.account

    def update(self, names: Iterable[str]) -> Deferred[None]:
        """Follow a change of instances, by their names; fires when every partition has the account of its instance."""
        changed: list[TopicNames] = []
        for name in names:
            view, known = self._instances.by_name.get(name), self.by_name.get(name)
            if view is None:
                if known is not None:
                    changed.append(self.by_name.pop(name).names)
            elif known is None:
                self.by_name[name] = known = InstancePartitions(view.instance)
                changed.append(known.names)
            else:
                before = known.names
                if known.configure(view.instance):
                    changed += (before, known.names)
        return Deferred.fromCoroutine(self._attach_all(changed))

    async def _attach_all(self, changed: Sequence[TopicNames]) -> None:
        """Attach the partitions whose topics have these names to the instances that they belong to now."""
        if not changed:
            return
        prefixes = tuple(names.prefix for names in changed)
        adopted = frozenset[str]().union(*(names.adopted for names in changed))
        checks_all = len(changed) > MOST_PREFIXES
        async for partition in yield_in_turns(self._clock, list(self._replicas)):
            topic = partition.topic
            is_concerned = checks_all or topic.startswith(prefixes) or topic in adopted
            if is_concerned and not partition.closed:
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
