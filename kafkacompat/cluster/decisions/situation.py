"""What the controller's decisions depend on besides the image, and what a decision returns.

A decision changes a draft whose brokers are those registered *after* the event, and returns a `Decision`. The situation is not
stored: a controller that takes over starts with an empty one and learns of failed replicas from the brokers' answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import MetadataImage, PartitionImage
from kafkacompat.wire.errors import KafkaError

UNCLEAN_ELECTION = "unclean.leader.election.enable"


class TopicPartition(NamedTuple):
    """A topic's name and a partition's number."""

    topic: str
    partition: int


class Replica(NamedTuple):
    """A partition's replica on one broker."""

    partition: int
    broker_id: int


class DeletionProgress(NamedTuple):
    """How far the deletion of a topic is: replicas that are deleted, and those whose broker has not answered yet.

    Until ``has_started`` is set, the deletion waits for the end of a reassignment, and the topic goes on working.
    """

    has_started: bool = False
    confirmed: frozenset[Replica] = frozenset()
    pending: frozenset[Replica] = frozenset()


@dataclass(frozen=True, slots=True)
class Situation:
    """Brokers that shut down, replicas in failed log directories by broker, topics that wait for their deletion, and settings.

    ``offline_replicas`` also has those that a broker with losses may not have any more, until it answers. ``doubtful_replicas`` may
    lack their last records: they lead only where no other replica that is in sync is alive, until the partition has a leader.
    ``unclean_by_default`` is the broker's unclean.leader.election.enable. ``recovery_supported`` lets an unclean election mark
    the partition as recovering (KIP-704, inter.broker.protocol.version 3.2 and later).
    """

    shutting_down: frozenset[int] = frozenset()
    offline_replicas: Mapping[int, frozenset[TopicPartition]] = field(default_factory=dict)
    deletions: Mapping[str, DeletionProgress] = field(default_factory=dict)
    unclean_by_default: bool = False
    recovery_supported: bool = True
    doubtful_replicas: Mapping[int, frozenset[TopicPartition]] = field(default_factory=dict)

    def is_queued(self, topic: str) -> bool:
        """Whether the topic is to be deleted."""
        return topic in self.deletions

    def is_deleting(self, topic: str) -> bool:
        """Whether brokers have been requested to delete the topic, so that it has no more elections."""
        return topic in self.deletions and self.deletions[topic].has_started

    def has_failed_directory(self, key: TopicPartition, broker_id: int) -> bool:
        """Whether a replica lies in a log directory that has failed."""
        return key in self.offline_replicas.get(broker_id, ())

    def list_doubtful(self, key: TopicPartition) -> list[int]:
        """List the brokers whose replicas of a partition may lack their last records."""
        return [broker for broker, keys in self.doubtful_replicas.items() if key in keys]

    def without_brokers(self, broker_ids: Collection[int]) -> Situation:
        """Forget what was known of brokers that have left or start again."""
        offline, doubtful = (
            {broker: keys for broker, keys in replicas.items() if broker not in broker_ids}
            for replicas in (self.offline_replicas, self.doubtful_replicas)
        )
        shutting_down = self.shutting_down.difference(broker_ids)
        return replace(self, shutting_down=shutting_down, offline_replicas=offline, doubtful_replicas=doubtful)

    def with_doubtful_replicas(self, broker_id: int, keys: Iterable[TopicPartition]) -> Situation:
        """Note which replicas of a broker that starts may lack their last records."""
        return replace(self, doubtful_replicas={**self.doubtful_replicas, broker_id: frozenset(keys)})

    def without_doubts(self, keys: Collection[TopicPartition]) -> Situation:
        """Forget the doubts about partitions that have a leader: their in-sync sets have been decided anew."""
        if not self.doubtful_replicas:
            return self
        doubtful = {broker: doubted.difference(keys) for broker, doubted in self.doubtful_replicas.items()}
        return replace(self, doubtful_replicas={broker: left for broker, left in doubtful.items() if left})

    def with_shutting_down(self, broker_id: int) -> Situation:
        """Note that a broker shuts down."""
        return replace(self, shutting_down=self.shutting_down | {broker_id})

    def with_offline_replicas(self, broker_id: int, keys: Iterable[TopicPartition]) -> Situation:
        """Replace the replicas of one broker that are in failed log directories."""
        return replace(self, offline_replicas={**self.offline_replicas, broker_id: frozenset(keys)})

    def with_deletions(self, changes: Mapping[str, DeletionProgress | None]) -> Situation:
        """Replace the progress of some deletions; None ends one."""
        deletions = {
            topic: progress for topic, progress in {**self.deletions, **changes}.items() if progress is not None
        }
        return replace(self, deletions=deletions)


class ReplicaStop(NamedTuple):
    """A replica that a broker stops (StopReplica), and deletes if ``delete`` is set."""

    broker_id: int
    key: TopicPartition
    delete: bool = False


class Decision(NamedTuple):
    """The situation after an event, the partitions that the draft changed and the replicas to stop.

    ``finished`` names topics that are gone and leave /admin/delete_topics.
    """

    situation: Situation
    changed: tuple[TopicPartition, ...] = ()
    stops: tuple[ReplicaStop, ...] = ()
    finished: tuple[str, ...] = ()

    def after(self, earlier: Decision) -> Decision:
        """Join two decisions on one draft; this one was made in the situation that *earlier* led to."""
        return Decision(
            self.situation,
            tuple(dict.fromkeys((*earlier.changed, *self.changed))),
            (*earlier.stops, *self.stops),
            (*earlier.finished, *self.finished),
        )


class PartitionResults(NamedTuple):
    """None or an error for each partition of a request, and the partitions that the draft changed."""

    results: dict[TopicPartition, KafkaError | None]
    changed: tuple[TopicPartition, ...]


class Presence:
    """Which replicas can take part in an election: those on registered brokers, without failed directories.

    The brokers in *absent* count as gone although they are registered, as in the first half of a bounce.
    """

    def __init__(self, registered: Collection[int], situation: Situation, absent: Collection[int] = ()) -> None:
        self._registered = frozenset(registered).difference(absent)
        self._live = self._registered - situation.shutting_down
        self._situation = situation

    def list_online(self, key: TopicPartition, replicas: Iterable[int]) -> list[int]:
        """List the replicas that may become leader, in their order."""
        return [node for node in replicas if node in self._live and not self._is_failed(key, node)]

    def is_present(self, key: TopicPartition, node: int) -> bool:
        """Whether a replica serves requests; its broker may be shutting down."""
        return node in self._registered and not self._is_failed(key, node)

    def _is_failed(self, key: TopicPartition, node: int) -> bool:
        return self._situation.has_failed_directory(key, node)


Change = Callable[[TopicPartition, PartitionImage], PartitionImage]


def change_partitions(
    draft: MetadataDraft, change: Change, keys: Iterable[TopicPartition] | None = None
) -> tuple[TopicPartition, ...]:
    """Apply *change* to the given partitions, or to all of them; return those that differ afterwards."""
    changed = []
    for name, partitions in _group_by_topic(draft, keys):
        changes = []
        for partition in partitions:
            after = change(TopicPartition(name, partition.partition), partition)
            if after != partition:
                changes.append(after)
        if changes:
            draft.put_partitions(name, changes)
            changed += [TopicPartition(name, partition.partition) for partition in changes]
    return tuple(changed)


def _group_by_topic(
    draft: MetadataDraft, keys: Iterable[TopicPartition] | None
) -> Iterator[tuple[str, Iterable[PartitionImage]]]:
    if keys is None:
        yield from [(name, topic.partitions) for name, topic in draft.topics.items()]
        return
    by_topic = defaultdict(list)
    for key in dict.fromkeys(keys):
        if partition := find_partition(draft, key):
            by_topic[key.topic].append(partition)
    yield from by_topic.items()


def find_partition(metadata: MetadataDraft | MetadataImage, key: TopicPartition) -> PartitionImage | None:
    """Return one partition, or None if it does not exist."""
    topic = metadata.topics.get(key.topic)
    if topic is None or not 0 <= key.partition < len(topic.partitions):
        return None
    return topic.partitions[key.partition]


def list_partitions(metadata: MetadataDraft | MetadataImage) -> Iterator[tuple[TopicPartition, PartitionImage]]:
    """List all partitions."""
    for name, topic in metadata.topics.items():
        for partition in topic.partitions:
            yield TopicPartition(name, partition.partition), partition


def changes_unclean_elections(before: MetadataImage, after: MetadataImage) -> bool:
    """Return whether unclean elections are allowed or forbidden in *after* otherwise than in *before*."""
    if before.configs is after.configs:
        return False
    values, old_values = (
        {key: configs[UNCLEAN_ELECTION] for key, configs in image.configs.items() if UNCLEAN_ELECTION in configs}
        for image in (after, before)
    )
    return values != old_values


def is_unclean_allowed(draft: MetadataDraft, situation: Situation, topic: str) -> bool:
    """Whether a replica that is not in sync may become leader when no other can: by the topic, the cluster or the default."""
    for resource in ((ResourceType.TOPIC, topic), (ResourceType.BROKER, "")):
        value = draft.configs.get(resource, {}).get(UNCLEAN_ELECTION)
        if value is not None:
            return value.strip().lower() == "true"
    return situation.unclean_by_default
