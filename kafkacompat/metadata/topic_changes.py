"""Creation, growth and deletion of topics, by the rules of Kafka's controller, on a draft."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.config.topics import check_topic_configs
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import NO_LEADER, PartitionImage, TopicImage
from kafkacompat.metadata.instance_limits import (
    FindInstance,
    check_new_partitions,
    check_new_topic,
    check_topic_configs_of,
    find_no_instance,
)
from kafkacompat.metadata.placement import check_assignment, new_partition, place_added_replicas, place_replicas
from kafkacompat.metadata.topic_names import CLUSTER_METADATA_TOPIC, check_topic_name, format_topic
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import new_uuid

MAX_PARTITIONS_PER_REQUEST = 10_000
BROKER_DEFAULT = -1
"""Stands for a count that the broker's configuration decides."""

AdmitPartitions: TypeAlias = "Callable[[str, int], None]"
"""Charges a topic's new or deleted partitions; raises KafkaError THROTTLING_QUOTA_EXCEEDED if the client's quota is used up."""


ListHosts: TypeAlias = "Callable[[str], Collection[int] | None]"
"""Returns the brokers that may have replicas of a topic, by its name; None for all of them."""


def allow_all_brokers(topic: str) -> Collection[int] | None:
    """Allow replicas anywhere, as those of a topic that belongs to no instance."""
    return None


def admit_all(topic: str, partitions: int) -> None:
    """Admit any change, as of a client without a quota."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A requested topic; ``assignments`` are (partition, replicas) that the client chose.

    If ``fewer_replicas_allowed`` is set and the cluster has fewer brokers than the replication factor, each partition gets a
    replica on every broker. The values of ``capped_configs`` are lowered to the number of replicas.
    """

    name: str
    partition_count: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)
    fewer_replicas_allowed: bool = False
    capped_configs: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """A topic's wanted number of partitions; ``assignments`` are the replicas of the new ones, None for any replicas."""

    name: str
    partition_count: int
    assignments: Sequence[Sequence[int]] | None = None


class TopicPlanner:
    """Plans changes of topics under a broker's *config*; a method that raises KafkaError leaves the draft unchanged.

    New partitions may be placed on the brokers in *shutting_down*, but these do not become leader or in sync. *admit* is called for
    changes that are valid otherwise (KIP-599). *find_instance* returns the instance of a topic, whose limits apply
    (POLICY_VIOLATION). *list_hosts* limits the brokers of a topic.
    """

    def __init__(
        self,
        config: BrokerConfig,
        rng: Random,
        shutting_down: Collection[int] = (),
        admit: AdmitPartitions = admit_all,
        find_instance: FindInstance = find_no_instance,
        list_hosts: ListHosts = allow_all_brokers,
    ) -> None:
        self._find_instance = find_instance
        self._config = config
        self._list_hosts = list_hosts
        self._admit = admit
        self._rng = rng
        self._shutting_down = frozenset(shutting_down)

    def check_size(self, wanted: Sequence[NewTopic]) -> None:
        """Reject a request for more partitions than one request may create (POLICY_VIOLATION)."""
        default = self._config.int("num.partitions")
        counts = (
            len(new.assignments) or (default if new.partition_count == BROKER_DEFAULT else max(new.partition_count, 0))
            for new in wanted
        )
        _check_count(sum(counts))

    def create_topic(self, draft: MetadataDraft, new: NewTopic) -> TopicImage:
        """Create one topic."""
        if new.name == CLUSTER_METADATA_TOPIC:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{new.name} cannot be created: Kafka's controllers use it")
        check_topic_name(new.name)
        if new.name in draft.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {new.name} exists already")
        if other := draft.find_colliding_topic(new.name):
            reason = f"topic {new.name} differs from topic {other} only in '.' and '_': choose another name"
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        configs = self._check_configs(new)
        replicas = self._check_assignments(draft, new) if new.assignments else self._place_replicas(draft, new)
        for name in new.capped_configs:
            configs[name] = str(min(int(configs[name]), len(replicas[0])))
        instance = self._find_instance(new.name)
        if instance is not None:
            check_topic_configs_of(instance, configs, {})
            check_new_topic(draft, instance, len(replicas))
        self._admit(new.name, len(replicas))
        partitions = self._build_partitions(draft, 0, replicas)
        topic = TopicImage(new.name, new_uuid(self._rng, draft.topics_by_id), partitions)
        draft.put_topic(topic)
        draft.put_config((ResourceType.TOPIC, new.name), configs)
        return topic

    def _check_configs(self, new: NewTopic) -> dict[str, str]:
        nulls = [name for name, value in new.configs.items() if value is None]
        if nulls:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Topic configs without a value: {', '.join(nulls)}")
        configs = {name: value for name, value in new.configs.items() if value is not None}
        try:
            check_topic_configs(self._config, configs)
        except ConfigError as problem:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(problem)) from problem
        return configs

    def _place_replicas(self, draft: MetadataDraft, new: NewTopic) -> list[tuple[int, ...]]:
        if new.replication_factor < BROKER_DEFAULT or new.replication_factor == 0:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR, f"A replication factor is 1 or more, not {new.replication_factor}"
            )
        if new.partition_count < BROKER_DEFAULT or new.partition_count == 0:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS, f"A topic has 1 partition or more, not {new.partition_count}"
            )
        count, factor = new.partition_count, new.replication_factor
        if count == BROKER_DEFAULT:
            count = self._config.int("num.partitions")
        if factor == BROKER_DEFAULT:
            factor = self._config.int("default.replication.factor")
        usable = self._list_usable_racks(draft, new.name)
        if new.fewer_replicas_allowed:
            factor = min(factor, max(len(usable), 1))
        return place_replicas(usable, count, factor, self._rng)

    def _list_usable_racks(self, draft: MetadataDraft, topic: str) -> dict[int, str | None]:
        """List the racks of the brokers that placement may choose for a topic.

        This broker is none of them when all its log directories are cordoned.
        """
        config, hosts = self._config, self._list_hosts(topic)
        full = {config.node_id} if set(config.log_dirs) <= set(config.cordoned_log_dirs) else set()
        return {
            node: broker.rack
            for node, broker in draft.brokers.items()
            if node not in full and (hosts is None or node in hosts)
        }

    def _check_hosts(self, draft: MetadataDraft, topic: str, replicas: Sequence[int], factor: int | None) -> None:
        """Reject an impossible choice of a partition's replicas, see `check_assignment`."""
        hosts = self._list_hosts(topic)
        if hosts is None:
            check_assignment(replicas, draft.brokers.keys(), factor)
        else:
            allowed = draft.brokers.keys() & hosts
            check_assignment(replicas, allowed, factor, "which accepts no replicas of this topic")

    def _check_assignments(self, draft: MetadataDraft, new: NewTopic) -> list[Sequence[int]]:
        for count, words in ((new.replication_factor, "replication factor"), (new.partition_count, "partition count")):
            if count != BROKER_DEFAULT:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"With a manual assignment the {words} is -1, not {count}")
        replicas: dict[int, Sequence[int]] = {}
        factor = None
        for index, nodes in new.assignments:
            if index in replicas:
                raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Partition {index} is assigned twice")
            self._check_hosts(draft, new.name, nodes, factor)
            replicas[index] = nodes
            factor = len(nodes)
        if sorted(replicas) != list(range(len(replicas))):
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions are numbered from 0 without gaps")
        return [replicas[index] for index in range(len(replicas))]

    def add_partitions(self, draft: MetadataDraft, more: NewPartitions) -> None:
        """Add partitions to one topic."""
        topic = draft.topics.get(more.name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{more.name}'")
        have = len(topic.partitions)
        if more.partition_count <= have:
            reason = f"Topic '{more.name}' has {have} partition(s): {more.partition_count} would not be more"
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        _check_count(more.partition_count - have)
        if any(partition.is_reassigned for partition in topic.partitions):
            reason = f"topic '{more.name}' has a reassignment in progress: wait for its end, or cancel it"
            raise KafkaError(ErrorCode.REASSIGNMENT_IN_PROGRESS, reason)
        replicas = self._choose_added_replicas(draft, topic, more)
        instance = self._find_instance(more.name)
        if instance is not None:
            check_new_partitions(draft, instance, len(replicas))
        self._admit(more.name, len(replicas))
        added = self._build_partitions(draft, have, replicas)
        draft.put_topic(topic._replace(partitions=(*topic.partitions, *added)))

    def _build_partitions(
        self, draft: MetadataDraft, first: int, replicas: Sequence[Sequence[int]]
    ) -> tuple[PartitionImage, ...]:
        online = draft.brokers.keys() - self._shutting_down
        return tuple(new_partition(first + index, nodes, online) for index, nodes in enumerate(replicas))

    def _choose_added_replicas(
        self, draft: MetadataDraft, topic: TopicImage, more: NewPartitions
    ) -> Sequence[Sequence[int]]:
        count, factor = more.partition_count - len(topic.partitions), len(topic.partitions[0].replicas)
        if more.assignments is None:
            existing = [partition.replicas for partition in topic.partitions]
            return place_added_replicas(self._list_usable_racks(draft, topic.name), existing, count)
        if len(more.assignments) != count:
            reason = f"{count} partition(s) are added, but {len(more.assignments)} assignment(s) are given"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        for nodes in more.assignments:
            self._check_hosts(draft, topic.name, nodes, factor)
        return more.assignments


def _check_count(partitions: int) -> None:
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        reason = f"{partitions} partitions are more than {MAX_PARTITIONS_PER_REQUEST}, the most of one request"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)


def elect_leaders(draft: MetadataDraft, node_id: int) -> None:
    """Make *node_id* the leader of all its partitions, each under a new epoch.

    A leader that was stopped may have lost records that it had appended: the new epoch lets consumers notice (KIP-320).
    """
    for topic in list(draft.topics.values()):
        draft.put_topic(
            topic._replace(partitions=tuple(_elect_leader(partition, node_id) for partition in topic.partitions))
        )


def elect_leader(draft: MetadataDraft, name: str, index: int, node_id: int) -> PartitionImage:
    """As `elect_leaders`, for one partition, which is returned; raises KafkaError UNKNOWN_TOPIC_OR_PARTITION."""
    topic = draft.topics.get(name)
    if topic is None or index >= len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index}")
    partitions = list(topic.partitions)
    partitions[index] = elected = _elect_leader(partitions[index], node_id)
    draft.put_topic(topic._replace(partitions=tuple(partitions)))
    return elected


def _elect_leader(partition: PartitionImage, node_id: int) -> PartitionImage:
    leader = node_id if node_id in partition.replicas else NO_LEADER
    return partition._replace(
        leader=leader,
        leader_epoch=partition.leader_epoch + 1,
        in_sync_replicas=(node_id,) if leader == node_id else partition.in_sync_replicas,
        partition_epoch=partition.partition_epoch + 1,
    )


def delete_topic(draft: MetadataDraft, topic_id: bytes, admit: AdmitPartitions = admit_all) -> None:
    """Delete one topic; raises KafkaError UNKNOWN_TOPIC_ID, and what *admit* raises."""
    topic = draft.topics_by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {format_topic(topic_id)}")
    admit(topic.name, len(topic.partitions))
    draft.remove_topic(topic.name)
