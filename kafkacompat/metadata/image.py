"""The cluster's metadata as request handlers see it: an immutable image, replaced as a whole by each change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import ClientConfig, Entity
from kafkacompat.security.acls.table import NO_ACLS, AclTable
from kafkacompat.security.tokens import TokenInfo
from kafkacompat.wire.primitives import ZERO_UUID

NO_LEADER = -1


class Losses(NamedTuple):
    """What a broker that has started may lack of what it had: whole replicas, and the last records of its replicas.

    Replicas are missing together with a log directory, if a disk is not mounted or was replaced. Records are missing if the
    machine has restarted after the broker was killed, and appends count before they are synced.
    """

    replicas: bool = False
    records: bool = False


NO_LOSSES = Losses()


class BrokerImage(NamedTuple):
    """A live broker.

    ``endpoints`` gives host and port of each listener that has a fixed address, ``security_protocols`` the protocol of each
    listener by name. ``epoch`` is the czxid of its registration in ZooKeeper (KIP-380), -1 on a single node. ``losses`` are those
    that the broker has registered with; None if they are not known, as of a broker of Kafka.
    """

    node_id: int
    rack: str | None
    endpoints: Mapping[str, tuple[str, int]]
    epoch: int = -1
    security_protocols: Mapping[str, str] = MappingProxyType({})
    losses: Losses | None = None


class PartitionImage(NamedTuple):
    """A partition's replicas; ``leader`` is NO_LEADER while no broker accepts writes to it.

    A reassignment (KIP-455) adds ``adding_replicas`` to ``replicas`` and takes ``removing_replicas`` away at its end; both are
    part of ``replicas`` until then. ``is_recovering`` is set after an unclean election until the leader has recovered (KIP-704).
    ``offline_replicas`` are the brokers that are down, or whose log directory has failed (KIP-112), as the controller knows them.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    partition_epoch: int
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    is_recovering: bool = False
    offline_replicas: tuple[int, ...] = ()

    @property
    def has_state(self) -> bool:
        """Whether the partition ever had a leader; without one it has no in-sync set, and its epochs are -1."""
        return self.partition_epoch >= 0

    @property
    def is_reassigned(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def origin_replicas(self) -> tuple[int, ...]:
        """The replicas that a cancelled reassignment goes back to."""
        return tuple(node for node in self.replicas if node not in self.adding_replicas)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas that a reassignment ends with."""
        return tuple(node for node in self.replicas if node not in self.removing_replicas)


class TopicImage(NamedTuple):
    """A topic; ``partitions`` are numbered from 0 without gaps.

    ``topic_id`` is ZERO_UUID for a topic that an old tool created in ZooKeeper, until the controller gives it an id.
    """

    name: str
    topic_id: bytes
    partitions: tuple[PartitionImage, ...]


ConfigKey = tuple[int, str]
"""The resource that a configuration belongs to: a ResourceType and a name ("" means every broker)."""
Configs = Mapping[ConfigKey, Mapping[str, str]]
"""The configurations of all resources."""


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Brokers, topics, configurations, clients, delegation tokens and access rules at one moment; ``version`` grows with each image published."""

    version: int = 0
    cluster_id: str = ""
    controller_id: int = NO_LEADER
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[bytes, TopicImage] = field(default_factory=dict)
    configs: Mapping[ConfigKey, Mapping[str, str]] = field(default_factory=dict)
    clients: Mapping[Entity, ClientConfig] = field(default_factory=dict)
    tokens: Mapping[str, TokenInfo] = field(default_factory=dict)
    acls: AclTable = field(default_factory=lambda: NO_ACLS)

    def config(self, resource: ResourceType, name: str) -> Mapping[str, str]:
        """Return the configs that were set for one resource."""
        return self.configs.get((resource, name), {})

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """Return one partition of a topic, or None when it does not exist."""
        topic_image = self.topics.get(topic)
        if topic_image is None or not 0 <= index < len(topic_image.partitions):
            return None
        return topic_image.partitions[index]

    def has_partition(self, topic: str | bytes, index: int) -> bool:
        """Return whether a topic, by its name or its id, has a partition."""
        topic_image = self.topics.get(topic) if isinstance(topic, str) else self.topics_by_id.get(topic)
        return topic_image is not None and 0 <= index < len(topic_image.partitions)

    def with_topics(self, topics: Mapping[str, TopicImage]) -> MetadataImage:
        """Return the image with these topics instead of its own."""
        by_id = {topic.topic_id: topic for topic in topics.values() if topic.topic_id != ZERO_UUID}
        return replace(self, topics=topics, topics_by_id=by_id)


WatchClients: TypeAlias = "Callable[[Mapping[Entity, ClientConfig]], None]"


class _LastComparison(NamedTuple):
    before: Configs
    after: Configs
    changed: frozenset[ConfigKey]


_last_comparison = _LastComparison({}, {}, frozenset())
"""Several parts of a broker follow the same change one after the other."""


def list_changed_configs(before: Configs, after: Configs) -> frozenset[ConfigKey]:
    """Return the resources whose configurations differ. Those that are equal are nearly always the same objects."""
    global _last_comparison
    if before is after:
        return frozenset()
    if not before:
        return frozenset(after)
    if before is not _last_comparison.before or after is not _last_comparison.after:
        suspects = [key for key, given in after.items() if before.get(key) is not given]
        differing = frozenset(key for key in suspects if before.get(key) != after[key])
        _last_comparison = _LastComparison(before, after, differing | (before.keys() - after.keys()))
    return _last_comparison.changed


class ImageHolder:
    """Holds the image that request handlers read."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self._on_clients_changed: list[WatchClients] = []
        self._on_published: list[Callable[[MetadataImage], None]] = []

    def watch(self, on_published: Callable[[MetadataImage], None]) -> None:
        """Call *on_published* with the image, now and after each change."""
        self._on_published.append(on_published)
        on_published(self.image)

    def watch_clients(self, on_changed: WatchClients) -> None:
        """Call *on_changed* with the quotas and credentials of all clients, now and after each change of them."""
        self._on_clients_changed.append(on_changed)
        on_changed(self.image.clients)

    def publish(self, image: MetadataImage) -> None:
        """Let handlers read *image* from now on, under the next version."""
        old, self.image = self.image, replace(image, version=self.image.version + 1)
        for on_published in self._on_published:
            on_published(self.image)
        if image.clients is not old.clients and image.clients != old.clients:
            for on_changed in self._on_clients_changed:
                on_changed(image.clients)
