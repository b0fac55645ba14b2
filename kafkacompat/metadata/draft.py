"""A changeable copy of the image, and the changes of the store that it amounts to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import ClientConfig, Entity
from kafkacompat.metadata.image import ConfigKey, MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.store import StoreChange
from kafkacompat.metadata.store_changes import SINGLE_NODE, StoreDifference, StoreForm
from kafkacompat.metadata.topic_names import unify_name
from kafkacompat.security.acls.model import AclPattern
from kafkacompat.security.acls.table import RuleSet
from kafkacompat.security.tokens import TokenInfo
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID

MAX_CHANGES_PER_REQUEST = 10_000


def check_change_count(count: int) -> None:
    """Reject a request for more changes than one request may make (KafkaError POLICY_VIOLATION)."""
    if count > MAX_CHANGES_PER_REQUEST:
        reason = f"{count} changes are more than {MAX_CHANGES_PER_REQUEST}, the most of one request"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)


def _list_prefixes(configs: Mapping[ConfigKey, Mapping[str, str]]) -> Mapping[int, set[str]]:
    """Return what the names of the instances' topics begin with, by length."""
    instances = {name: given for (kind, name), given in configs.items() if kind == ResourceType.INSTANCE}
    if not instances:
        return {}
    # A broker without instances does not read their properties.
    from kafkacompat.config.instances import find_prefix

    by_length: dict[int, set[str]] = {}
    for name, given in instances.items():
        prefix = find_prefix(name, given)
        by_length.setdefault(len(prefix), set()).add(prefix)
    return by_length


class OwnedTopics:
    """How many topics and partitions of a draft are an instance's; *owns* returns whether a topic is, by its name."""

    def __init__(self, owns: Callable[[str], bool], topics: Iterable[TopicImage]) -> None:
        self._owns = owns
        self._partitions: dict[str, int] = {}
        self.partition_count = 0
        for topic in topics:
            self.put(topic)

    @property
    def topic_count(self) -> int:
        """How many topics there are."""
        return len(self._partitions)

    def put(self, topic: TopicImage) -> None:
        """Count a topic that is added or replaced, if it is the instance's."""
        if self._owns(topic.name):
            self.remove(topic.name)
            self._partitions[topic.name] = len(topic.partitions)
            self.partition_count += len(topic.partitions)

    def remove(self, name: str) -> None:
        """Count a topic no more."""
        self.partition_count -= self._partitions.pop(name, 0)


class MetadataDraft:
    """A copy of *image* that a plan reads and changes; nothing else sees it until it is committed."""

    def __init__(self, image: MetadataImage) -> None:
        self._before = image
        # The values of these dictionaries mean nothing; unlike sets, they keep the order of the changes.
        self._touched_topics: dict[str, None] = {}
        self._touched_configs: dict[ConfigKey, None] = {}
        self._touched_entities: dict[Entity, None] = {}
        self._touched_tokens: dict[str, None] = {}
        self._touched_patterns: dict[AclPattern, None] = {}
        self.brokers = image.brokers
        self.topics = dict(image.topics)
        self.topics_by_id = dict(image.topics_by_id)
        self._unified: dict[str, str] | None = None
        self._prefixes: Mapping[int, set[str]] = {}
        self._owned: dict[str, OwnedTopics] = {}
        self.configs = dict(image.configs)
        self.clients = dict(image.clients)
        self.tokens = dict(image.tokens)
        self.acls = image.acls

    def put_topic(self, topic: TopicImage) -> None:
        """Add a topic, or replace the one of the same name."""
        self._touched_topics[topic.name] = None
        self.topics[topic.name] = topic
        if topic.topic_id != ZERO_UUID:
            self.topics_by_id[topic.topic_id] = topic
        if self._unified is not None:
            self._unified[self._unify(topic.name)] = topic.name
        for owned in self._owned.values():
            owned.put(topic)

    def put_partitions(self, name: str, partitions: Iterable[PartitionImage]) -> None:
        """Replace some partitions of one topic.

        The store counts a state's writes, so a partition's epoch is one more than the committed one if its state differs from
        that, however often the draft changed it.
        """
        topic = self.topics[name]
        before = self._before.topics_by_id.get(topic.topic_id)
        changed = list(topic.partitions)
        for partition in partitions:
            index = partition.partition
            committed = before.partitions[index] if before and index < len(before.partitions) else None
            changed[index] = partition._replace(partition_epoch=_count_writes(committed, partition))
        self.put_topic(topic._replace(partitions=tuple(changed)))

    def remove_topic(self, name: str) -> None:
        """Remove a topic with its configuration."""
        self._touched_topics[name] = None
        self.topics_by_id.pop(self.topics.pop(name).topic_id, None)
        self._unified = None
        for owned in self._owned.values():
            owned.remove(name)
        self.put_config((ResourceType.TOPIC, name), {})

    def put_config(self, resource: ConfigKey, configs: Mapping[str, str]) -> None:
        """Replace a resource's configuration; an empty one is removed."""
        self._touched_configs[resource] = None
        if configs:
            self.configs[resource] = configs
        else:
            self.configs.pop(resource, None)

    def put_client(self, entity: Entity, config: ClientConfig) -> None:
        """Replace an entity's quotas and credentials; an entity without any is removed."""
        self._touched_entities[entity] = None
        if any(config):
            self.clients[entity] = config
        else:
            self.clients.pop(entity, None)

    def put_token(self, token: TokenInfo) -> None:
        """Add a delegation token, or replace the one of the same id."""
        self._touched_tokens[token.token_id] = None
        self.tokens[token.token_id] = token

    def remove_token(self, token_id: str) -> None:
        """Remove a delegation token."""
        self._touched_tokens[token_id] = None
        del self.tokens[token_id]

    def put_rules(self, changes: Mapping[AclPattern, RuleSet]) -> None:
        """Replace the access rules of some patterns; a pattern without any is removed."""
        self._touched_patterns.update(dict.fromkeys(changes))
        self.acls = self.acls.replace(changes)

    def count_topics(self, instance_name: str, owns: Callable[[str], bool]) -> OwnedTopics:
        """Count an instance's topics. All topics are searched once: a request may create hundreds beside thousands."""
        if instance_name not in self._owned:
            self._owned[instance_name] = OwnedTopics(owns, self.topics.values())
        return self._owned[instance_name]

    def find_colliding_topic(self, name: str) -> str | None:
        """Find the topic of the same instance whose name differs from *name* only in '.' and '_'."""
        if self._unified is None:
            self._prefixes = _list_prefixes(self.configs)
            self._unified = {self._unify(topic): topic for topic in self.topics}
        return self._unified.get(self._unify(name))

    def _unify(self, topic: str) -> str:
        """Return the form of a name that no two topics may share; the topics of an instance do not concern those of others."""
        for length, prefixes in self._prefixes.items():
            if topic[:length] in prefixes:
                return topic[:length] + unify_name(topic[length:])
        return unify_name(topic)

    def build_image(self) -> MetadataImage:
        """Build the image with the changes made so far."""
        return replace(
            self._before,
            configs=self.configs,
            topics=self.topics,
            topics_by_id=self.topics_by_id,
            clients=self.clients,
            tokens=self.tokens,
            acls=self.acls,
        )

    def list_changes(
        self,
        versions: Mapping[str, int],
        foreign: Mapping[str, bytes] | None = None,
        form: StoreForm = SINGLE_NODE,
    ) -> list[StoreChange]:
        """List the changes for a store whose keys have these *versions*; see `StoreDifference`.

        A topic comes after its configuration and before the states of its partitions.
        """
        difference = StoreDifference(self._before, self.build_image(), versions, foreign or {}, form)
        for resource in self._touched_configs:
            difference.add_config(resource)
        # The key of a user is above the keys of its clients.
        for entity in sorted(self._touched_entities, key=len):
            difference.add_client(entity)
        for token_id in self._touched_tokens:
            difference.add_token(token_id)
        for pattern in self._touched_patterns:
            difference.add_rules(pattern)
        for name in self._touched_topics:
            difference.add_topic(name)
        return difference.list_changes()


def _count_writes(committed: PartitionImage | None, partition: PartitionImage) -> int:
    """Return the version that a partition's state has once the draft is committed; -1 if it has no state."""
    if committed is None:
        return 0 if partition.in_sync_replicas else -1
    is_same = _get_state(committed) == _get_state(partition)
    return committed.partition_epoch + (not is_same)


def _get_state(partition: PartitionImage) -> tuple[int, int, tuple[int, ...], bool]:
    """Return what the store keeps as a partition's state; its replicas are part of the topic."""
    return partition.leader, partition.leader_epoch, partition.in_sync_replicas, partition.is_recovering
