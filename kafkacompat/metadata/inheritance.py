"""The contents of a new store: the topics whose folders are in the log directories already.

They come from Apache Kafka, or from this broker if its store was lost. The records of Kafka's controllers are believed.
Without them, the configurations of topics are unknown, and the broker deletes none of their records until an administrator
alters them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import NamedTuple

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.resources import ResourceType, check_client_metrics_configs, check_group_configs
from kafkacompat.config.topics import check_topic_configs
from kafkacompat.metadata.client_entities import CLIENT_ID, IP, USER
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.kraft import KraftCluster
from kafkacompat.metadata.topic_names import check_topic_name
from kafkacompat.security.acls.table import group_acls
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.primitives import ZERO_UUID, new_uuid

KEEP_EVERYTHING = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"}
"""The configs of a topic with unknown configs: neither retention nor compaction removes its records."""

INTERNAL_CONFIGS = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
"""The configs that Kafka creates its COMPACTED topics with."""

COMPACTED = ("__consumer_offsets", "__transaction_state")
"""Kafka's own topics that are compacted. `__share_group_state` is not: a record does not replace earlier ones of its key."""

_DELETION = frozenset(
    [
        "cleanup.policy",
        "retention.ms",
        "retention.bytes",
        "delete.retention.ms",
        "min.compaction.lag.ms",
        "max.compaction.lag.ms",
    ]
)

MAX_MISSING_PARTITIONS = 1000
"""More missing partitions than this mean that a folder of another kind has the name of a partition with a very high number."""

PRODUCER_ID_LEAP = 1 << 40
"""Distance of this broker's producer ids from the known ones.

Kafka has allocated ids to producers that wrote nothing yet, and allocates more if it gets the directories back. Two producers
with one id would look like one producer that repeats itself.
"""

Check = Callable[[Mapping[str, str]], None]


class InheritedPartition(NamedTuple):
    """A partition's folder: its topic's id (zeros: unknown), its newest leader epoch and largest producer id (-1: none)."""

    topic: str
    partition: int
    topic_id: bytes
    leader_epoch: int
    producer_id: int


class Inheritance:
    """Plans the contents of a new store; ``warnings`` are sentences for the administrator.

    ``kraft`` is the cluster of Kafka's controllers, or None when there is no such record or it is outdated.
    """

    def __init__(
        self, config: BrokerConfig, partitions: Sequence[InheritedPartition], kraft: KraftCluster | None, rng: Random
    ) -> None:
        self._config = config
        self._partitions = partitions
        self._kraft = kraft
        self._rng = rng
        self.warnings: list[str] = []

    @property
    def next_producer_id(self) -> int:
        """The first producer id that Kafka does not allocate; 0 when the log directories hold no partitions."""
        if not self._partitions:
            return 0
        allocated = self._kraft.next_producer_id if self._kraft else 0
        return max(allocated, *(folder.producer_id + 1 for folder in self._partitions)) + PRODUCER_ID_LEAP

    def fill_draft(self, draft: MetadataDraft) -> None:
        """Put topics, configurations, client entities, delegation tokens and access rules into an empty draft."""
        self.warnings.clear()
        for topic in self._build_topics():
            draft.put_topic(topic)
            draft.put_config((ResourceType.TOPIC, topic.name), self._find_topic_configs(topic.name))
        if self._kraft is not None:
            self._put_configs(draft, self._kraft)
            self._put_clients(draft, self._kraft)
            for token in self._kraft.tokens.values():
                draft.put_token(token)
            draft.put_rules(group_acls(self._kraft.acls.values()))

    # Topics

    def _build_topics(self) -> Iterator[TopicImage]:
        folders: defaultdict[str, list[InheritedPartition]] = defaultdict(list)
        for folder in self._partitions:
            folders[folder.topic].append(folder)
        known = {name: uuid for uuid, name in self._kraft.topics.items()} if self._kraft else {}
        # A topic that Kafka's controllers do not know was deleted.
        for name in sorted(folders if self._kraft is None else known):
            topic_id = known.get(name) or _find_most_common_id(folders[name]) or new_uuid(self._rng)
            own = [folder for folder in folders[name] if folder.topic_id in (topic_id, ZERO_UUID)]
            if topic := self._build_topic(name, topic_id, own):
                yield topic

    def _build_topic(self, name: str, topic_id: bytes, folders: Sequence[InheritedPartition]) -> TopicImage | None:
        epochs = self._find_leader_epochs(topic_id, folders)
        count = max(epochs, default=-1) + 1
        missing_count = count - len({folder.partition for folder in folders} & epochs.keys())
        try:
            check_topic_name(name)
        except KafkaError as problem:
            self.warnings.append(f"Left out the folders of {name!r}: {problem}")
            return None
        if missing_count > MAX_MISSING_PARTITIONS:
            words = f"the topic would have {count} partitions, but {missing_count} folders are missing"
            self.warnings.append(f"Left out the folders of {name!r}: {words}")
            return None
        partitions = (self._build_partition(index, epochs.get(index, 0)) for index in range(count))
        return TopicImage(name, topic_id, tuple(partitions))

    def _find_leader_epochs(self, topic_id: bytes, folders: Sequence[InheritedPartition]) -> dict[int, int]:
        """Return the newest epoch of each partition of the topic, 0 where none is known."""
        if self._kraft is None:
            epochs = dict.fromkeys((folder.partition for folder in folders), 0)
        else:
            epochs = {index: epoch for (uuid, index), epoch in self._kraft.leader_epochs.items() if uuid == topic_id}
        for folder in folders:
            if folder.partition in epochs:
                epochs[folder.partition] = max(epochs[folder.partition], folder.leader_epoch)
        return epochs

    def _build_partition(self, index: int, leader_epoch: int) -> PartitionImage:
        """Build a partition of this node alone, even if other nodes had replicas of it."""
        nodes = (self._config.node_id,)
        return PartitionImage(index, self._config.node_id, leader_epoch, nodes, nodes, 0)

    # Configurations

    def _find_topic_configs(self, name: str) -> Mapping[str, str]:
        if self._kraft is None:
            return INTERNAL_CONFIGS if name in COMPACTED else KEEP_EVERYTHING
        configs = self._kraft.configs.get((ResourceType.TOPIC, name), {})
        valid = self._keep_valid(f"topic {name}", configs, lambda some: check_topic_configs(self._config, some))
        # With only some of the configs for cleaning, the broker might delete records that Kafka kept.
        return valid if _DELETION.isdisjoint(configs.keys() - valid.keys()) else {**valid, **KEEP_EVERYTHING}

    def _put_configs(self, draft: MetadataDraft, kraft: KraftCluster) -> None:
        checks: Mapping[int, Check] = {
            # The configuration in effect leaves out invalid properties of brokers itself, with a warning.
            ResourceType.BROKER: lambda _: None,
            ResourceType.GROUP: lambda some: check_group_configs(self._config, some),
            ResourceType.CLIENT_METRICS: check_client_metrics_configs,
        }
        for (resource, name), configs in kraft.configs.items():
            is_own = resource != ResourceType.BROKER or name in ("", str(self._config.node_id))
            if resource in checks and is_own:
                draft.put_config((resource, name), self._keep_valid(name, configs, checks[resource]))

    def _keep_valid(self, owner: str, configs: Mapping[str, str], check: Check) -> Mapping[str, str]:
        """Return all configs if they are valid together, otherwise those that are valid by themselves."""
        with suppress(ConfigError):
            check(configs)
            return configs
        kept = {}
        for name, text in configs.items():
            try:
                check({name: text})
                kept[name] = text
            except ConfigError as problem:
                self.warnings.append(f"Left out {name}={text} of {owner}: {problem}")
        return kept

    def _put_clients(self, draft: MetadataDraft, kraft: KraftCluster) -> None:
        for entity, config in kraft.clients.items():
            if {kind for kind, _ in entity} <= {USER, CLIENT_ID, IP}:
                draft.put_client(entity, config)


def _find_most_common_id(folders: Sequence[InheritedPartition]) -> bytes | None:
    """Return the id that most folders of a name have; a folder with another id belongs to a deleted topic."""
    counts = Counter(folder.topic_id for folder in folders if folder.topic_id != ZERO_UUID)
    return counts.most_common(1)[0][0] if counts else None


def list_unconfigured_topics(image: MetadataImage) -> list[str]:
    """List the topics that still keep all records because their configs are unknown."""
    owners = (
        name for name in image.topics if KEEP_EVERYTHING.items() <= image.config(ResourceType.TOPIC, name).items()
    )
    return sorted(owners)
