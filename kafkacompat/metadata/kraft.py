"""The cluster that the records of Kafka's controllers describe, as far as this broker keeps such metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import ClientConfig, Entity, make_entity, make_user_entity
from kafkacompat.metadata.image import ConfigKey
from kafkacompat.security.acls.model import (
    AccessRule,
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResourceType,
    PatternType,
)
from kafkacompat.security.principals import parse_principal
from kafkacompat.security.scram import ScramCredential, ScramMechanism
from kafkacompat.security.tokens import TokenInfo
from kafkacompat.wire.metadata_records import (
    NO_LEADER_CHANGE,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
    read_metadata_record,
)
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.schema import Message


class KraftCluster:
    """Topics with their partitions' leader epochs, configurations, the quotas and credentials of clients, tokens, and access rules.

    ``topics`` maps a topic's id to its name, ``leader_epochs`` (id, partition) to an epoch. ``tokens`` has delegation tokens by
    their ids, ``acls`` rules by their ids in the log. ``next_producer_id`` is the first producer id that was not allocated to a
    broker.
    """

    def __init__(self) -> None:
        self.topics: dict[bytes, str] = {}
        self.leader_epochs: dict[tuple[bytes, int], int] = {}
        self.configs: dict[ConfigKey, dict[str, str]] = {}
        self.clients: dict[Entity, ClientConfig] = {}
        self.tokens: dict[str, TokenInfo] = {}
        self.acls: dict[bytes, Acl] = {}
        self.next_producer_id = 0
        self._open: list[Message] | None = None

    def replay(self, values: Iterable[Buffer]) -> None:
        """Apply records in their order; raises MalformedError for one that cannot be read."""
        for value in values:
            record = read_metadata_record(value)
            if record is not None:
                self._apply_or_hold(record)

    def _apply_or_hold(self, record: Message) -> None:
        """Apply a record, or hold it until its transaction ends."""
        if isinstance(record, BeginTransactionRecord):
            self._open = []
        elif isinstance(record, AbortTransactionRecord):
            self._open = None
        elif isinstance(record, EndTransactionRecord):
            held_records, self._open = self._open or [], None
            for held in held_records:
                self._apply(held)
        elif self._open is not None:
            self._open.append(record)
        else:
            self._apply(record)

    def _apply(self, record: Message) -> None:
        _APPLY[type(record)](self, record)

    def _apply_topic(self, record: TopicRecord) -> None:
        self.topics[record.topic_id] = record.name

    def _apply_topic_removal(self, record: RemoveTopicRecord) -> None:
        name = self.topics.pop(record.topic_id, "")
        self.configs.pop((ResourceType.TOPIC, name), None)
        for key in [key for key in self.leader_epochs if key[0] == record.topic_id]:
            del self.leader_epochs[key]

    def _apply_partition(self, record: PartitionRecord) -> None:
        self.leader_epochs[record.topic_id, record.partition_id] = record.leader_epoch

    def _apply_partition_change(self, record: PartitionChangeRecord) -> None:
        key = record.topic_id, record.partition_id
        if key in self.leader_epochs and record.leader != NO_LEADER_CHANGE:
            self.leader_epochs[key] += 1

    def _apply_config(self, record: ConfigRecord) -> None:
        configs = self.configs.setdefault((record.resource_type, record.resource_name), {})
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value

    def _apply_quota(self, record: ClientQuotaRecord) -> None:
        entity = make_entity((part.entity_type, part.entity_name) for part in record.entity)
        config = self.clients.get(entity, ClientConfig())
        quotas = {name: value for name, value in config.quotas.items() if name != record.key}
        if not record.remove:
            quotas[record.key] = record.value
        self.clients[entity] = config._replace(quotas=quotas)

    def _apply_credential(self, record: UserScramCredentialRecord) -> None:
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        self._set_credential(record.name, record.mechanism, credential)

    def _apply_credential_removal(self, record: RemoveUserScramCredentialRecord) -> None:
        self._set_credential(record.name, record.mechanism, None)

    def _set_credential(self, user: str, mechanism: int, credential: ScramCredential | None) -> None:
        if mechanism not in set(ScramMechanism):
            return
        config = self.clients.get(make_user_entity(user), ClientConfig())
        credentials = {other: kept for other, kept in config.credentials.items() if other != mechanism}
        if credential is not None:
            credentials[ScramMechanism(mechanism)] = credential
        self.clients[make_user_entity(user)] = config._replace(credentials=credentials)

    def _apply_token(self, record: DelegationTokenRecord) -> None:
        """Add or change a token; raises MalformedError for one whose users cannot be read."""
        try:
            owner, requester, *renewers = map(parse_principal, (record.owner, record.requester, *record.renewers))
        except ValueError as problem:
            raise MalformedError(f"the delegation token {record.token_id} cannot be read: {problem}") from None
        self.tokens[record.token_id] = TokenInfo(
            record.token_id,
            owner,
            requester,
            tuple(renewers),
            record.issue_timestamp,
            record.expiration_timestamp,
            record.max_timestamp,
        )

    def _apply_token_removal(self, record: RemoveDelegationTokenRecord) -> None:
        self.tokens.pop(record.token_id, None)

    def _apply_producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = max(self.next_producer_id, record.next_producer_id)

    def _apply_acl(self, record: AccessControlEntryRecord) -> None:
        """Add a rule; raises MalformedError for one with a code that is not known, as it may deny something."""
        try:
            self.acls[record.id] = Acl(
                AclPattern(
                    AclResourceType(record.resource_type), PatternType(record.pattern_type), record.resource_name
                ),
                AccessRule(
                    record.principal,
                    record.host,
                    AclOperation(record.operation),
                    AclPermission(record.permission_type),
                ),
            )
        except ValueError as problem:
            raise MalformedError(f"an access rule cannot be read: {problem}") from None

    def _apply_acl_removal(self, record: RemoveAccessControlEntryRecord) -> None:
        self.acls.pop(record.id, None)


_APPLY: Mapping[type[Message], Callable[[KraftCluster, Any], None]] = {
    TopicRecord: KraftCluster._apply_topic,
    RemoveTopicRecord: KraftCluster._apply_topic_removal,
    PartitionRecord: KraftCluster._apply_partition,
    PartitionChangeRecord: KraftCluster._apply_partition_change,
    ConfigRecord: KraftCluster._apply_config,
    ClientQuotaRecord: KraftCluster._apply_quota,
    UserScramCredentialRecord: KraftCluster._apply_credential,
    RemoveUserScramCredentialRecord: KraftCluster._apply_credential_removal,
    DelegationTokenRecord: KraftCluster._apply_token,
    RemoveDelegationTokenRecord: KraftCluster._apply_token_removal,
    ProducerIdsRecord: KraftCluster._apply_producer_ids,
    AccessControlEntryRecord: KraftCluster._apply_acl,
    RemoveAccessControlEntryRecord: KraftCluster._apply_acl_removal,
}
