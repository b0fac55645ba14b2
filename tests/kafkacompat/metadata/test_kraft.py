"""What is taken from the records of Kafka's controllers."""

from __future__ import annotations

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import ClientConfig, make_entity, make_user_entity
from kafkacompat.metadata.kraft import KraftCluster
from kafkacompat.security.principals import Principal
from kafkacompat.security.scram import ScramCredential, ScramMechanism
from kafkacompat.security.tokens import TokenInfo
from kafkacompat.wire.metadata_records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
    write_metadata_record,
)
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import Message
from tests.kafkacompat.security.acls.rules import parse_acl

ID, OTHER_ID = bytes(range(16)), bytes(range(1, 17))
NO_OP = b"\x01\x14\x00\x00"


def make_cluster(*records: Message) -> KraftCluster:
    made = KraftCluster()
    made.replay([NO_OP, *map(write_metadata_record, records)])
    return made


def make_config(name: str, value: str | None, topic: str = "t") -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic, name=name, value=value)


def make_quota(value: float, *, remove: bool = False, user: str | None = "u") -> ClientQuotaRecord:
    entity = [EntityData(entity_type="user", entity_name=user)]
    return ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=value, remove=remove)


def test_a_change_that_names_a_leader_begins_an_epoch() -> None:
    made = make_cluster(
        TopicRecord(name="t", topic_id=ID),
        PartitionRecord(topic_id=ID, partition_id=0, leader_epoch=3),
        PartitionRecord(topic_id=ID, partition_id=1, leader_epoch=0),
        PartitionChangeRecord(topic_id=ID, partition_id=0, leader=-1),
        PartitionChangeRecord(topic_id=ID, partition_id=0, leader=1),
        PartitionChangeRecord(topic_id=ID, partition_id=1, isr=[1]),
        PartitionChangeRecord(topic_id=OTHER_ID, partition_id=1, leader=1),
    )
    assert made.topics == {ID: "t"}
    assert made.leader_epochs == {(ID, 0): 5, (ID, 1): 0}


def test_a_deleted_topic_leaves_nothing_to_the_next_of_its_name() -> None:
    made = make_cluster(
        TopicRecord(name="t", topic_id=ID),
        PartitionRecord(topic_id=ID, partition_id=0, leader_epoch=3),
        make_config("retention.ms", "1"),
        RemoveTopicRecord(topic_id=ID),
        TopicRecord(name="t", topic_id=OTHER_ID),
    )
    assert made.topics == {OTHER_ID: "t"}
    assert (made.leader_epochs, made.configs) == ({}, {})


def test_configs_are_set_and_taken_away() -> None:
    made = make_cluster(
        make_config("a", "1"),
        make_config("b", "2"),
        make_config("a", None),
        make_config("b", "3"),
        make_config("a", "4", "other"),
    )
    assert made.configs == {(ResourceType.TOPIC, "t"): {"b": "3"}, (ResourceType.TOPIC, "other"): {"a": "4"}}


def test_quotas_are_set_and_removed() -> None:
    made = make_cluster(
        make_quota(10.0), make_quota(20.0), make_quota(1.0, user=None), make_quota(0.0, user=None, remove=True)
    )
    assert made.clients == {
        make_entity([("user", "u")]): ClientConfig({"producer_byte_rate": 20.0}),
        make_entity([("user", None)]): ClientConfig(),
    }


def test_credentials_are_set_and_removed_beside_quotas() -> None:
    def credential(mechanism: int) -> UserScramCredentialRecord:
        return UserScramCredentialRecord(
            name="u", mechanism=mechanism, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        )

    made = make_cluster(
        make_quota(10.0),
        credential(1),
        credential(2),
        credential(9),
        RemoveUserScramCredentialRecord(name="u", mechanism=1),
    )
    expected = {ScramMechanism.SHA_512: ScramCredential(b"s", b"k", b"v", 4096)}
    assert made.clients == {make_user_entity("u"): ClientConfig({"producer_byte_rate": 10.0}, expected)}


def test_access_rules_are_added_and_removed() -> None:
    def rule(number: int, **codes: int) -> AccessControlEntryRecord:
        codes = {"resource_type": 2, "pattern_type": 3, "operation": 3, "permission_type": 3, **codes}
        return AccessControlEntryRecord(
            id=bytes([number]) * 16, resource_name="orders", principal="User:alice", host="*", **codes
        )

    made = make_cluster(rule(1), rule(2, operation=4), RemoveAccessControlEntryRecord(id=b"\1" * 16))
    assert list(made.acls.values()) == [parse_acl("+alice WRITE TOPIC orders")]
    with pytest.raises(MalformedError, match="an access rule cannot be read"):
        make_cluster(rule(1, operation=99))


def make_token(token_id: str, expiry_ms: int, *renewers: str) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner="User:alice",
        requester="User:admin",
        renewers=list(renewers),
        issue_timestamp=1,
        max_timestamp=9,
        expiration_timestamp=expiry_ms,
        token_id=token_id,
    )


def test_tokens_are_created_renewed_and_removed() -> None:
    made = make_cluster(
        make_token("a", 5, "User:b:c"),
        make_token("z", 5),
        make_token("a", 7),
        RemoveDelegationTokenRecord(token_id="z"),
    )
    alice, admin = Principal("User", "alice"), Principal("User", "admin")
    assert made.tokens == {"a": TokenInfo("a", alice, admin, (), 1, 7, 9)}
    assert make_cluster(make_token("a", 5, "User:b:c")).tokens["a"].renewers == (Principal("User", "b:c"),)
    with pytest.raises(MalformedError, match="the delegation token a cannot be read: the principal 'bob' is not valid"):
        make_cluster(make_token("a", 5, "bob"))


def test_a_token_is_read_as_kafka_writes_it() -> None:
    """The order of the fields is that of Kafka's schema; both times follow the issue time."""
    value = b"\x01\x0a\x00" + b"\x07User:a" + b"\x07User:b" + b"\x02\x07User:c"
    value += b"".join(number.to_bytes(8, "big") for number in (1, 3, 2)) + b"\x03id" + b"\x00"
    made = KraftCluster()
    made.replay([value])
    users = [Principal("User", name) for name in "abc"]
    assert made.tokens == {"id": TokenInfo("id", users[0], users[1], (users[2],), 1, 2, 3)}


def test_producer_ids_only_grow() -> None:
    assert (
        make_cluster(
            ProducerIdsRecord(next_producer_id=2000), ProducerIdsRecord(next_producer_id=1000)
        ).next_producer_id
        == 2000
    )


def test_a_transaction_counts_when_it_ends_and_not_when_it_is_aborted() -> None:
    begin, first, second = BeginTransactionRecord(), make_config("a", "1"), make_config("b", "2")
    assert make_cluster(begin, first).configs == {}
    assert make_cluster(begin, first, AbortTransactionRecord(), second).configs == {
        (ResourceType.TOPIC, "t"): {"b": "2"}
    }
    assert make_cluster(begin, first, EndTransactionRecord()).configs == {(ResourceType.TOPIC, "t"): {"a": "1"}}
