"""The brokers that an instance lives on: those that may have its replicas, and those that its clients see.

An instance lives on the brokers of its group, or on those outside all groups if it names none. What all instances share is the
leaders of the internal topics: they are the coordinators of groups and transactions, and all clients see them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kafkacompat.config.broker_groups import BrokerGroups, read_broker_groups
from kafkacompat.config.instances import Instance, find_prefix
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import NO_LEADER
from kafkacompat.metadata.topic_changes import ListHosts
from kafkacompat.metadata.topic_names import INTERNAL_TOPICS
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.draft import MetadataDraft
    from kafkacompat.metadata.image import BrokerImage, ConfigKey, MetadataImage
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.tenancy.tenant_view import TenantView


# Replicas


def limit_hosts(draft: MetadataDraft, config: BrokerConfig) -> ListHosts:
    """Return the function that lists the brokers which may have replicas of a topic, by its physical name."""
    owners: list[_TopicOwners] = []
    groups = read_broker_groups(config)

    def list_topic_hosts(topic: str) -> Collection[int] | None:
        if not owners:
            # Most changes create no topic.
            owners.append(_TopicOwners(draft.configs))
        instance = owners[0].find(topic)
        return None if instance is None else list_hosts(instance, draft.brokers, groups)

    return list_topic_hosts


class _TopicOwners:
    """The instances of one draft, which may be newer than what the broker has published."""

    def __init__(self, configs: Mapping[ConfigKey, Mapping[str, str]]) -> None:
        self._owners: dict[str, Instance] = {}
        self._given = {name: given for (kind, name), given in configs.items() if kind == ResourceType.INSTANCE}
        self._by_prefix = {find_prefix(name, given): name for name, given in self._given.items()}
        self._prefix_lengths = sorted({len(prefix) for prefix in self._by_prefix}, reverse=True)
        self._adopted = {
            physical: name
            for name, given in self._given.items()
            if given.get("topic.names")
            for physical in _read_part(name, given, "topic.names").tables[entities.TOPIC].values()
        }

    def find(self, topic: str) -> Instance | None:
        """Return the instance that a topic belongs to; None for a topic of the operator."""
        name = self._adopted.get(topic)
        for length in self._prefix_lengths if name is None else ():
            name = name or self._by_prefix.get(topic[:length])
        if name is None:
            return None
        if name not in self._owners:
            self._owners[name] = _read_part(name, self._given[name], "placement.")
        return self._owners[name]


def _read_part(name: str, given: Mapping[str, str], prefix: str) -> Instance:
    """Return an instance with the properties of one subject: others, such as whitelists, may be long."""
    return Instance(name, {option: text for option, text in given.items() if option.startswith(prefix)})


def list_topics_of_group(image: MetadataImage, group: str) -> Iterator[str]:
    """Yield the topics of the instances that live in a group alone, and in all its racks."""
    owners = _TopicOwners(image.configs)
    for topic in image.topics:
        instance = owners.find(topic)
        if instance is None or instance.list("placement.racks"):
            continue
        if instance.list("placement.group") == (group,):
            yield topic


def list_hosts(instance: Instance, brokers: Mapping[int, BrokerImage], groups: BrokerGroups) -> frozenset[int] | None:
    """List the live brokers that new replicas of an instance are placed on; None for all brokers.

    While the instance moves, these are the brokers of the group that it moves to.
    """
    if _lives_anywhere(instance, groups):
        return None
    return _list_brokers(instance, instance.list("placement.group")[-1:], brokers, groups)


def _lives_anywhere(instance: Instance, groups: BrokerGroups) -> bool:
    return not (groups or instance.list("placement.group") or instance.list("placement.racks"))


def _list_brokers(
    instance: Instance, names: Sequence[str], brokers: Mapping[int, BrokerImage], groups: BrokerGroups
) -> frozenset[int]:
    """List the live brokers of groups, or those outside all groups if *names* is empty, in the racks of an instance."""
    node_ids: Collection[int] = brokers.keys() & {node_id for name in names for node_id in groups.get(name, ())}
    if not names:
        node_ids = brokers.keys() - {node_id for group in groups.values() for node_id in group}
    racks = instance.list("placement.racks")
    return frozenset(node_id for node_id in node_ids if not racks or (brokers[node_id].rack or "") in racks)


# What clients see


def list_visible_brokers(
    tenant: TenantView, instances: Instances, image: MetadataImage, groups: BrokerGroups
) -> Collection[int]:
    """List the brokers that the clients of an instance see.

    These are the live brokers of its groups, those that have replicas of its topics, and the leaders of the internal topics: any of
    them may coordinate one of its groups or transactions. If none of all these is alive, the clients see every broker.
    """
    if _lives_anywhere(tenant.instance, groups):
        return image.brokers
    basis = (image.version, groups)
    if tenant.visible_basis != basis:
        tenant.visible_basis = basis
        tenant.visible_brokers = _find_visible(tenant, instances, image, groups)
    return tenant.visible_brokers


def _find_visible(
    tenant: TenantView, instances: Instances, image: MetadataImage, groups: BrokerGroups
) -> frozenset[int]:
    instance = tenant.instance
    names = instance.list("placement.group")
    visible = set(_list_brokers(instance, names, image.brokers, groups))
    for topic in instances.list_topics(tenant):
        for partition in image.topics[topic].partitions:
            visible.update(partition.replicas)
    for topic in INTERNAL_TOPICS & image.topics.keys():
        visible.update(partition.leader for partition in image.topics[topic].partitions)
    visible.discard(NO_LEADER)
    return frozenset(visible & image.brokers.keys()) or frozenset(image.brokers)
