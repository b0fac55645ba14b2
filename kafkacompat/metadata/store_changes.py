"""The changes of a store that lead from one image to another; only those parts are encoded that differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import USER, Entity, format_client_key, format_client_values
from kafkacompat.metadata.codec import format_config_key
from kafkacompat.metadata.image import ConfigKey, MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.store import ABSENT, StoreChange
from kafkacompat.metadata.znodes.configs import encode_config
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.security import encode_rules, find_acl_key
from kafkacompat.metadata.znodes.topics import encode_partition_state, encode_topic
from kafkacompat.security.acls.model import AclPattern


class StoreForm(NamedTuple):
    """The form of a store's values, as far as the image does not say it.

    ``controller_epoch`` is written into the states of partitions. With ``has_tree`` the store is a tree as in ZooKeeper: topics,
    brokers and groups without configs keep an empty value, as in Kafka, no key is deleted before the keys below it, and changes
    of configs, quotas, credentials and access rules are announced.
    """

    controller_epoch: int = 1
    has_tree: bool = False


SINGLE_NODE = StoreForm()
"""The form of the store of a single node, which is its only controller."""


class StoreDifference:
    """Collects the changes that lead from the image *before* to the image *after*.

    The store's keys have these *versions*. Values are encoded over the *foreign* values of their keys, see
    `codec.StoreContents`. The ``add_`` methods raise StoreError if a foreign value is no JSON object.
    """

    def __init__(
        self,
        before: MetadataImage,
        after: MetadataImage,
        versions: Mapping[str, int],
        foreign: Mapping[str, bytes],
        form: StoreForm,
    ) -> None:
        self._before = before
        self._after = after
        self._versions = versions
        self._foreign = foreign
        self._form = form
        self._values: dict[str, bytes | None] = {}
        self._announced: set[str] = set()

    def add_config(self, resource: ConfigKey) -> None:
        """Add the change of one resource's configuration."""
        key = format_config_key(resource)
        before, after = self._before.configs.get(resource), self._after.configs.get(resource)
        if (before or {}) != (after or {}):
            self._announced.add(key)
        is_stored = before is not None
        if self._form.has_tree:
            is_stored = is_stored or key in self._versions
            if after is None and not self._is_of_deleted_topic(resource):
                after = {}
        if after is None:
            if is_stored:
                self._values[key] = None
        elif not is_stored or (before or {}) != after:
            self._values[key] = encode_config(key, after, self._foreign.get(key))

    def _is_of_deleted_topic(self, resource: ConfigKey) -> bool:
        kind, name = resource
        return kind == ResourceType.TOPIC and name not in self._after.topics

    def add_client(self, entity: Entity) -> None:
        """Add the change of one entity's quotas and credentials."""
        key = format_client_key(entity)
        before, after = self._before.clients.get(entity), self._after.clients.get(entity)
        if before == after:
            return
        self._announced.add(key)
        if after is not None:
            self._values[key] = encode_config(key, format_client_values(after), self._foreign.get(key))
        elif self._form.has_tree and len(entity) == 1 and entity in self._users_with_clients:
            self._values[key] = encode_config(key, {}, self._foreign.get(key))
        else:
            self._values[key] = None
            if self._form.has_tree and USER in dict(entity):
                self._delete_empty_parents(((USER, dict(entity)[USER]),))

    @cached_property
    def _users_with_clients(self) -> set[Entity]:
        """The users below whose keys there are keys of their clients."""
        return {((USER, dict(entity)[USER]),) for entity in self._after.clients if len(entity) > 1}

    def _delete_empty_parents(self, user: Entity) -> None:
        """Delete the keys above a user's clients once the last of them is deleted, as Kafka does."""
        if user in self._users_with_clients:
            return
        key = format_client_key(user)
        for parent in (f"{key}/clients", *(() if user in self._after.clients else (key,))):
            if parent in self._versions:
                self._values[parent] = None

    def add_rules(self, pattern: AclPattern) -> None:
        """Add the change of the access rules of one pattern."""
        key = find_acl_key(pattern, self._versions)
        before, after = self._before.acls.rules_of(pattern), self._after.acls.rules_of(pattern)
        if before != after:
            self._announced.add(key)
            self._values[key] = encode_rules(key, after, self._foreign.get(key)) if after else None

    def add_topic(self, name: str) -> None:
        """Add the changes of one topic: of its assignment, and of the state of each partition."""
        before, after = self._before.topics.get(name), self._after.topics.get(name)
        key = Znode.TOPIC.path(topic=name)
        if after is None:
            if before is not None:
                self._values[key] = None
        elif before is None or _list_assignment(before) != _list_assignment(after):
            self._values[key] = encode_topic(after, self._foreign.get(key))
        old, new = (() if topic is None else topic.partitions for topic in (before, after))
        for number, (known, partition) in enumerate(zip_longest(old, new)):
            if known is not partition:
                self._add_state(name, number, known, partition)

    def _add_state(self, topic: str, number: int, before: PartitionImage | None, after: PartitionImage | None) -> None:
        key = Znode.PARTITION_STATE.path(topic=topic, partition=number)
        if after is None:
            # The controller may have stopped before it wrote the state.
            if key in self._versions:
                self._values[key] = None
        elif after.has_state and (before is None or _list_state(before) != _list_state(after)):
            epoch = self._form.controller_epoch
            self._values[key] = encode_partition_state(topic, after, epoch, self._foreign.get(key))

    def list_changes(self) -> list[StoreChange]:
        """List the changes: new values in the order in which they were added, then deletions in the reverse order.

        Of the deletions, those of the deepest keys come first.
        """
        changes = [
            StoreChange(key, self._versions.get(key, ABSENT), value, self._form.has_tree and key in self._announced)
            for key, value in self._values.items()
        ]
        deletions = [change for change in reversed(changes) if change.value is None]
        deletions.sort(key=lambda change: change.key.count("/"), reverse=True)
        return [*(change for change in changes if change.value is not None), *deletions]


def _list_assignment(topic: TopicImage) -> tuple[object, ...]:
    """Return what a topic's own key holds."""
    return topic.topic_id, [
        (partition.replicas, partition.adding_replicas, partition.removing_replicas) for partition in topic.partitions
    ]


def _list_state(partition: PartitionImage) -> tuple[object, ...]:
    """Return what the key of a partition's state holds."""
    return partition.leader, partition.leader_epoch, partition.in_sync_replicas, partition.is_recovering


def apply_changes(versions: dict[str, int], foreign: dict[str, bytes], changes: Iterable[StoreChange]) -> None:
    """Update *versions* and *foreign* for changes that the store has made."""
    for change in changes:
        if change.value is None:
            del versions[change.key]
            foreign.pop(change.key, None)
        else:
            versions[change.key] = change.expected_version + 1
            if change.key in foreign:
                foreign[change.key] = change.value
