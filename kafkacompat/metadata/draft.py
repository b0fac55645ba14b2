"""A changeable copy of the image, and the changes of the store that it amounts to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import ClientConfig, Entity, format_client_key, format_client_values
from kafkacompat.metadata.codec import encode_config, encode_topic, format_config_key
from kafkacompat.metadata.image import ConfigKey, MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.store import ABSENT, StoreChange
from kafkacompat.metadata.topic_names import unify_name
from kafkacompat.wire.errors import ErrorCode, KafkaError

MAX_CHANGES_PER_REQUEST = 10_000


def check_change_count(count: int) -> None:
    """Reject a request for more changes than one request may make (KafkaError POLICY_VIOLATION)."""
    if count > MAX_CHANGES_PER_REQUEST:
        reason = f"{count} changes are more than {MAX_CHANGES_PER_REQUEST}, the most of one request"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)


class MetadataDraft:
    """A copy of *image* that a plan reads and changes; nothing else sees it until it is committed."""

    def __init__(self, image: MetadataImage) -> None:
        self._before = image
        self._touched: set[str] = set()
        self._touched_configs: set[ConfigKey] = set()
        self._touched_entities: set[Entity] = set()
        self.brokers = image.brokers
        self.topics = dict(image.topics)
        self.topics_by_id = dict(image.topics_by_id)
        self._unified: dict[str, str] | None = None
        self.configs = dict(image.configs)
        self.clients = dict(image.clients)

    def put_topic(self, topic: TopicImage) -> None:
        """Add a topic, or replace the one of the same name."""
        self._touched.add(topic.name)
        self.topics[topic.name] = self.topics_by_id[topic.topic_id] = topic
        if self._unified is not None:
            self._unified[unify_name(topic.name)] = topic.name

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
        self._touched.add(name)
        del self.topics_by_id[self.topics.pop(name).topic_id]
        self._unified = None
        self.put_config((ResourceType.TOPIC, name), {})

    def put_config(self, resource: ConfigKey, configs: Mapping[str, str]) -> None:
        """Replace a resource's configuration; an empty one is removed."""
        self._touched_configs.add(resource)
        if configs:
            self.configs[resource] = configs
        else:
            self.configs.pop(resource, None)

    def put_client(self, entity: Entity, config: ClientConfig) -> None:
        """Replace an entity's quotas and credentials; an entity without any is removed."""
        self._touched_entities.add(entity)
        if any(config):
            self.clients[entity] = config
        else:
            self.clients.pop(entity, None)

    def find_colliding_topic(self, name: str) -> str | None:
        """Find the topic whose name differs from *name* only in '.' and '_'."""
        if self._unified is None:
            self._unified = {unify_name(topic): topic for topic in self.topics}
        return self._unified.get(unify_name(name))

    def build_image(self) -> MetadataImage:
        """Build the image with the changes made so far."""
        return replace(
            self._before,
            configs=self.configs,
            topics=self.topics,
            topics_by_id=self.topics_by_id,
            clients=self.clients,
        )

    def list_changes(self, versions: Mapping[str, int]) -> list[StoreChange]:
        """List the changes for a store whose keys have these *versions*."""
        before = self._encode_touched(self._before)
        after = self._encode_touched(self.build_image())
        keys = [*after, *(key for key in before if key not in after)]
        return [
            StoreChange(key, versions.get(key, ABSENT), after.get(key))
            for key in keys
            if before.get(key) != after.get(key)
        ]

    def _encode_touched(self, image: MetadataImage) -> dict[str, bytes]:
        """Encode the topics, configurations and entities that the plan touched."""
        entries: dict[str, bytes] = {}
        for name in self._touched & image.topics.keys():
            entries.update(encode_topic(image.topics[name]))
        for resource in self._touched_configs & image.configs.keys():
            entries[format_config_key(resource)] = encode_config(image.configs[resource])
        for entity in self._touched_entities & image.clients.keys():
            entries[format_client_key(entity)] = encode_config(format_client_values(image.clients[entity]))
        return entries


def _count_writes(committed: PartitionImage | None, partition: PartitionImage) -> int:
    """Return the version that a partition's state has once the draft is committed; -1 if it has no state."""
    if committed is None:
        return 0 if partition.in_sync_replicas else -1
    is_same = _get_state(committed) == _get_state(partition)
    return committed.partition_epoch + (not is_same)


def _get_state(partition: PartitionImage) -> tuple[int, int, tuple[int, ...], bool]:
    """Return what the store keeps as a partition's state; its replicas are part of the topic."""
    return partition.leader, partition.leader_epoch, partition.in_sync_replicas, partition.is_recovering


def apply_versions(versions: dict[str, int], changes: Iterable[StoreChange]) -> None:
    """Update *versions* for changes that the store has made."""
    for change in changes:
        if change.value is None:
            del versions[change.key]
        else:
            versions[change.key] = change.expected_version + 1
