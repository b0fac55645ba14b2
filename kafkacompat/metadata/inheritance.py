"""What a new store begins with: the topics whose folders are in the log directories already.

They come from Apache Kafka, or from this broker when its store was lost. What Kafka's controllers wrote is
believed; without it nobody knows how a topic was configured, and nothing of it is deleted until somebody says so.
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
from kafkacompat.metadata.draft import Draft
from kafkacompat.metadata.image import MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.kraft import KraftCluster
from kafkacompat.metadata.topic_changes import new_topic_id
from kafkacompat.metadata.topic_names import check_topic_name
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.primitives import ZERO_UUID

KEEP_EVERYTHING = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"}
"""The configs of a topic of which nobody knows any: neither retention nor compaction takes anything from it."""

INTERNAL_CONFIGS = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
"""Those that Kafka makes its COMPACTED topics with."""

COMPACTED = ("__consumer_offsets", "__transaction_state")
"""Of Kafka's own topics `__share_group_state` is none of them: one record of a key does not stand for those before it."""

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
"""A folder of another kind may be named like a partition of a very high number."""

PRODUCER_ID_LEAP = 1 << 40
"""How far our producer ids begin above those that are known: Kafka gave others to producers that wrote nothing yet,
and will give more should it take the directories back. Two producers of one id would pass for one that repeats itself.
"""

Check = Callable[[Mapping[str, str]], None]


class FoundPartition(NamedTuple):
    """A partition's folder: its topic's id (zeros for none), and the newest epoch and largest producer id in it (or -1)."""

    topic: str
    partition: int
    topic_id: bytes
    leader_epoch: int
    producer_id: int


class Inheritance:
    """Works out what to begin with; ``warnings`` are sentences for whoever looks after the broker.

    ``kraft`` is what Kafka's controllers wrote, None where there is nothing or it is not true any more.
    """

    def __init__(
        self, config: BrokerConfig, found: Sequence[FoundPartition], kraft: KraftCluster | None, rng: Random
    ) -> None:
        self._config = config
        self._found = found
        self._kraft = kraft
        self._rng = rng
        self.warnings: list[str] = []

    @property
    def next_producer_id(self) -> int:
        """The first producer id that nobody else is given; 0 where nobody was before."""
        if not self._found:
            return 0
        given = self._kraft.next_producer_id if self._kraft else 0
        return max(given, *(each.producer_id + 1 for each in self._found)) + PRODUCER_ID_LEAP

    def plan(self, draft: Draft) -> None:
        """Put everything into an empty draft."""
        self.warnings.clear()
        for topic in self._topics():
            draft.put_topic(topic)
            draft.put_config((ResourceType.TOPIC, topic.name), self._topic_configs(topic.name))
        if self._kraft is not None:
            self._put_configs(draft, self._kraft)
            self._put_clients(draft, self._kraft)

    # Topics

    def _topics(self) -> Iterator[TopicImage]:
        folders: defaultdict[str, list[FoundPartition]] = defaultdict(list)
        for each in self._found:
            folders[each.topic].append(each)
        known = {name: uuid for uuid, name in self._kraft.topics.items()} if self._kraft else {}
        # What Kafka's controllers do not know of was deleted: it is nobody's.
        for name in sorted(folders if self._kraft is None else known):
            topic_id = known.get(name) or _most_common_id(folders[name]) or new_topic_id(self._rng)
            mine = [each for each in folders[name] if each.topic_id in (topic_id, ZERO_UUID)]
            if topic := self._topic(name, topic_id, mine):
                yield topic

    def _topic(self, name: str, topic_id: bytes, folders: Sequence[FoundPartition]) -> TopicImage | None:
        epochs = self._leader_epochs(topic_id, folders)
        count = max(epochs, default=-1) + 1
        missing_count = count - len({each.partition for each in folders} & epochs.keys())
        try:
            check_topic_name(name)
        except KafkaError as problem:
            self.warnings.append(f"the folders of {name!r} are left out: {problem}")
            return None
        if missing_count > MAX_MISSING_PARTITIONS:
            words = f"{count} partitions, but {missing_count} folders are missing"
            self.warnings.append(f"the folders of {name!r} are left out: it would have {words}")
            return None
        partitions = (self._partition(index, epochs.get(index, 0)) for index in range(count))
        return TopicImage(name, topic_id, tuple(partitions))

    def _leader_epochs(self, topic_id: bytes, folders: Sequence[FoundPartition]) -> dict[int, int]:
        """The newest epoch of each partition there is, 0 where none is known."""
        if self._kraft is None:
            epochs = dict.fromkeys((each.partition for each in folders), 0)
        else:
            epochs = {index: epoch for (uuid, index), epoch in self._kraft.leader_epochs.items() if uuid == topic_id}
        for each in folders:
            if each.partition in epochs:
                epochs[each.partition] = max(epochs[each.partition], each.leader_epoch)
        return epochs

    def _partition(self, index: int, leader_epoch: int) -> PartitionImage:
        """A partition of this node alone, whoever else had replicas of it."""
        nodes = (self._config.node_id,)
        return PartitionImage(index, self._config.node_id, leader_epoch, nodes, nodes, 0)

    # Configurations

    def _topic_configs(self, name: str) -> Mapping[str, str]:
        if self._kraft is None:
            return INTERNAL_CONFIGS if name in COMPACTED else KEEP_EVERYTHING
        configs = self._kraft.configs.get((ResourceType.TOPIC, name), {})
        valid = self._valid(f"topic {name}", configs, lambda some: check_topic_configs(self._config, some))
        # By what is left, records might go that were to stay.
        return valid if _DELETION.isdisjoint(configs.keys() - valid.keys()) else {**valid, **KEEP_EVERYTHING}

    def _put_configs(self, draft: Draft, kraft: KraftCluster) -> None:
        checks: Mapping[int, Check] = {
            # What does not fit is left out of the configuration in effect, with a warning of its own.
            ResourceType.BROKER: lambda _: None,
            ResourceType.GROUP: lambda some: check_group_configs(self._config, some),
            ResourceType.CLIENT_METRICS: check_client_metrics_configs,
        }
        for (resource, name), configs in kraft.configs.items():
            is_mine = resource != ResourceType.BROKER or name in ("", str(self._config.node_id))
            if resource in checks and is_mine:
                draft.put_config((resource, name), self._valid(name, configs, checks[resource]))

    def _valid(self, owner: str, configs: Mapping[str, str], check: Check) -> Mapping[str, str]:
        """The configs that this broker takes: all, or those that are valid by themselves."""
        with suppress(ConfigError):
            check(configs)
            return configs
        kept = {}
        for name, text in configs.items():
            try:
                check({name: text})
                kept[name] = text
            except ConfigError as problem:
                self.warnings.append(f"{name}={text} of {owner} is left out: {problem}")
        return kept

    def _put_clients(self, draft: Draft, kraft: KraftCluster) -> None:
        for entity, config in kraft.clients.items():
            if {kind for kind, _ in entity} <= {USER, CLIENT_ID, IP}:
                draft.put_client(entity, config)


def _most_common_id(folders: Sequence[FoundPartition]) -> bytes | None:
    """The id that most folders of a name have; those with another one are of a topic that was deleted."""
    counts = Counter(each.topic_id for each in folders if each.topic_id != ZERO_UUID)
    return counts.most_common(1)[0][0] if counts else None


def unconfigured(image: MetadataImage) -> list[str]:
    """The topics that still keep everything because nobody knows their configs."""
    owners = (
        name for name in image.topics if KEEP_EVERYTHING.items() <= image.config(ResourceType.TOPIC, name).items()
    )
    return sorted(owners)
