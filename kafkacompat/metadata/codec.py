"""The image of a metadata store: topics, configs, clients, delegation tokens and access rules from keys and values that are those of Kafka's znodes.

`kafkacompat.metadata.znodes` has the paths and the form of every value.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import (
    ClientConfig,
    Entity,
    is_client_key,
    parse_client_key,
    parse_client_values,
)
from kafkacompat.metadata.image import NO_LEADER, ConfigKey, MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.store import StoreEntry, StoreError
from kafkacompat.metadata.topic_names import is_legal_name
from kafkacompat.metadata.znodes.cluster import decode_cluster_id
from kafkacompat.metadata.znodes.configs import CONFIG, read_config
from kafkacompat.metadata.znodes.paths import DEFAULT_NAME, Znode, decode_name, encode_name, identify_path
from kafkacompat.metadata.znodes.security import ACLS, parse_acl_key, read_rules
from kafkacompat.metadata.znodes.tokens import TOKEN, decode_token
from kafkacompat.metadata.znodes.topics import TOPIC, Assignment, parse_partition_state, read_topic
from kafkacompat.metadata.znodes.values import Fields, Schema, build_damage_error, parse_fields
from kafkacompat.security.acls.model import AclPattern
from kafkacompat.security.acls.table import AclTable, RuleSet
from kafkacompat.security.tokens import TokenInfo

log = logging.getLogger(__name__)

CLUSTER_ID = Znode.CLUSTER_ID.path()
PRODUCER_IDS = Znode.PRODUCER_IDS.path()

MAX_REASON_LENGTH = 200
"""Most characters that a message shows of the reason why quotas or credentials are damaged."""

_CONFIG_KINDS = {
    ResourceType.TOPIC: "topics",
    ResourceType.BROKER: "brokers",
    ResourceType.GROUP: "groups",
    ResourceType.CLIENT_METRICS: "client-metrics",
    ResourceType.INSTANCE: "instances",
}
_RESOURCE_TYPES = {kind: resource for resource, kind in _CONFIG_KINDS.items()}


class StoreContents(NamedTuple):
    """The image that a store holds, and the values that say more than the image.

    ``foreign`` has the values with fields or versions that this release does not know. A change is encoded over them.
    """

    image: MetadataImage
    foreign: Mapping[str, bytes]


def format_config_key(resource: ConfigKey) -> str:
    """Build the key of one resource's configuration."""
    kind, name = resource
    return Znode.CONFIG.path(kind=_CONFIG_KINDS[ResourceType(kind)], name=encode_name(name) or DEFAULT_NAME)


def decode_image(entries: Mapping[str, StoreEntry]) -> MetadataImage:
    """Build the image of all entries of a store, without brokers; raises StoreError, see `decode_store`."""
    return decode_store(entries).image


def decode_store(
    entries: Mapping[str, StoreEntry], on_damaged: Callable[[str, StoreError], object] | None = None
) -> StoreContents:
    """Decode all entries of a store; the image has no brokers.

    Raises StoreError for a value that does not have the form that its key requires. With *on_damaged* the image lacks
    such topics and configurations, and the function receives the key and the error of each.
    """
    return _Decoder(entries, on_damaged).decode()


class StoredTopics(NamedTuple):
    """The topics of a store, and the names of those that are damaged."""

    sound: Mapping[str, TopicImage]
    damaged: frozenset[str]


def decode_topics(entries: Mapping[str, StoreEntry]) -> StoredTopics:
    """Decode the topics among all entries of a store, and log the damaged ones; raises StoreError for other damage."""
    damaged: set[str] = set()

    def leave_out(key: str, problem: StoreError) -> None:
        names = Znode.TOPIC.match(key)
        if names is None:
            raise problem
        log.error("Left out topic %s: %s", names["topic"], problem)
        damaged.add(names["topic"])

    return StoredTopics(decode_store(entries, leave_out).image.topics, frozenset(damaged))


def refresh_partition(key: str, partition: PartitionImage, entry: StoreEntry) -> tuple[PartitionImage, bool]:
    """Return a partition with the state that its key holds, and whether that is foreign; raises StoreError."""
    state, is_foreign = parse_partition_state(key, entry.value)
    refreshed = partition._replace(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        in_sync_replicas=state.in_sync_replicas,
        partition_epoch=entry.version,
        is_recovering=state.is_recovering,
    )
    return refreshed, is_foreign


class _Decoder:
    """Decodes the entries of one store."""

    def __init__(
        self, entries: Mapping[str, StoreEntry], on_damaged: Callable[[str, StoreError], object] | None
    ) -> None:
        self._entries = entries
        self._on_damaged = on_damaged
        self._topics: dict[str, TopicImage] = {}
        self._configs: dict[ConfigKey, dict[str, str]] = {}
        self._clients: dict[Entity, ClientConfig] = {}
        self._tokens: dict[str, TokenInfo] = {}
        self._rules: dict[AclPattern, RuleSet] = {}
        self._foreign: dict[str, bytes] = {}

    def decode(self) -> StoreContents:
        for key in self._entries:
            try:
                self._decode_entry(key)
            except StoreError as problem:
                if self._on_damaged is None:
                    raise
                self._on_damaged(key, problem)
        cluster = self._entries.get(CLUSTER_ID)
        image = MetadataImage(
            cluster_id="" if cluster is None else decode_cluster_id(cluster.value),
            configs=self._configs,
            clients=self._clients,
            tokens=self._tokens,
            acls=AclTable(self._rules),
        )
        return StoreContents(image.with_topics(self._topics), self._foreign)

    def _decode_entry(self, key: str) -> None:
        znode, names = identify_path(key) or (None, {})
        if znode is Znode.TOPIC:
            self._topics[names["topic"]] = self._decode_topic(key, names["topic"])
        elif is_client_key(key):
            self._decode_client(key)
        elif znode is Znode.TOKEN:
            self._parse(key, TOKEN)
            self._tokens[names["token_id"]] = decode_token(key, self._entries[key].value)
        elif znode is Znode.CONFIG and names["kind"] in _RESOURCE_TYPES:
            name = "" if names["name"] == DEFAULT_NAME else decode_name(names["name"])
            self._decode_config(key, (_RESOURCE_TYPES[names["kind"]], name))
        elif znode in (Znode.ACLS, Znode.EXTENDED_ACLS):
            self._decode_rules(key)

    def _decode_topic(self, key: str, name: str) -> TopicImage:
        if not is_legal_name(name):
            raise build_damage_error(key, "no topic may have this name")
        topic_id, assignments = read_topic(self._parse(key, TOPIC))
        partitions = (self._decode_partition(name, index, replicas) for index, replicas in enumerate(assignments))
        return TopicImage(name, topic_id, tuple(partitions))

    def _decode_partition(self, topic: str, index: int, assignment: Assignment) -> PartitionImage:
        key = Znode.PARTITION_STATE.path(topic=topic, partition=index)
        # A controller creates the state after the topic, and may have stopped in between.
        partition = PartitionImage(index, NO_LEADER, -1, assignment.replicas, (), -1, *assignment[1:])
        entry = self._entries.get(key)
        if entry is None:
            return partition
        refreshed, is_foreign = refresh_partition(key, partition, entry)
        if is_foreign:
            self._foreign[key] = entry.value
        return refreshed

    def _decode_config(self, key: str, resource: ConfigKey) -> None:
        if configs := self._read_config(key):
            self._configs[resource] = configs

    def _decode_client(self, key: str) -> None:
        if not self._entries[key].value:
            return
        try:
            entity, config = parse_client_key(key), parse_client_values(self._read_config(key))
        except (KeyError, ValueError) as problem:
            raise build_damage_error(key, str(problem)[:MAX_REASON_LENGTH]) from problem
        if any(config):
            self._clients[entity] = config

    def _decode_rules(self, key: str) -> None:
        pattern = parse_acl_key(key)
        if pattern is not None and self._entries[key].value and (rules := read_rules(self._parse(key, ACLS))):
            self._rules[pattern] = rules

    def _read_config(self, key: str) -> dict[str, str]:
        # A znode that is only the parent of others has an empty value.
        return read_config(self._parse(key, CONFIG, secret=True)) if self._entries[key].value else {}

    def _parse(self, key: str, schema: Schema, *, secret: bool = False) -> Fields:
        value = self._entries[key].value
        fields = parse_fields(key, value, secret=secret)
        if schema.is_foreign(fields):
            self._foreign[key] = value
        return fields
