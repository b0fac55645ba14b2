"""The one table of rights: the rights that each API asks for, and the guard that asks.

The rules are those of Apache Kafka 4.3.1 (KafkaApis, AuthHelper, ControllerApis), and of 3.9 for requests between brokers.
`compat_tests/test_authorization.py` asks Kafka and this broker about each right of the table, and
`tests/handlers/guards/test_answers_of_kafka.py` proves that each guard asks for the rights of its row and for no others. The error
of a refusal follows from the type of the resource (`rights.ERRORS`).
"""

from __future__ import annotations

from typing import NamedTuple

from kafkacompat.handlers.guards import configs, described_topics, groups, rights, topic_changes, topics, whole
from kafkacompat.handlers.guards.access import Guard
from kafkacompat.handlers.guards.items import guard_items, name_field, name_itself, name_topic_from
from kafkacompat.handlers.guards.refusals import Items
from kafkacompat.handlers.guards.rights import AccessCheck
from kafkacompat.security.acls.model import AclOperation as Operation
from kafkacompat.security.acls.model import AclResourceType as Kind


class Row(NamedTuple):
    """One API: the rights that it asks for, and its guard."""

    checks: tuple[AccessCheck, ...]
    guard: Guard


def _on_topics(operation: Operation, items: Items, field: str = "name", by_id_from: int = 1 << 15) -> Row:
    check = AccessCheck(operation, Kind.TOPIC)
    return Row((check,), guard_items(check, items, name_topic_from(by_id_from, field)))


def _on_cluster(operation: Operation, items: Items | None = None) -> Row:
    check = AccessCheck(operation, Kind.CLUSTER)
    return Row((check,), whole.guard_cluster(check, items))


def _on_named(*rights: tuple[Operation, Kind, str]) -> Row:
    checks = tuple(AccessCheck(operation, kind) for operation, kind, _ in rights)
    return Row(checks, whole.guard_named(*zip(checks, (field for _, _, field in rights), strict=True)))


def _on_resources(operation: Operation, answered: str) -> Row:
    checks = tuple(AccessCheck(operation, kind) for kind in (Kind.TOPIC, Kind.GROUP, Kind.CLUSTER))
    return Row(checks, configs.guard_configs(operation, answered))


_TOPICS = Items(("topics", "partitions"), ("topics", "partitions"))
_OFFSETS = Items(_TOPICS.asked, _TOPICS.answered, {"offset": -1, "timestamp": -1, "leader_epoch": -1})
_READ_GROUP = _on_named((Operation.READ, Kind.GROUP, "group_id"))
_CLUSTER_ACTION = _on_cluster(Operation.CLUSTER_ACTION)
_WRITE_TRANSACTION = (Operation.WRITE, Kind.TRANSACTIONAL_ID, "transactional_id")

TABLE: dict[int, Row] = {
    0: Row((rights.WRITE_TOPIC, rights.WRITE_TRANSACTION), topics.guard_produce),
    2: _on_topics(Operation.DESCRIBE, _OFFSETS),
    3: Row(
        (rights.DESCRIBE_TOPIC, rights.CREATE_TOPIC, rights.CREATE_ANY_TOPIC, rights.DESCRIBE_CLUSTER),
        described_topics.guard_metadata,
    ),
    8: Row(
        (rights.READ_GROUP, rights.READ_TOPIC),
        groups.guard_commit([(rights.READ_GROUP, "group_id")], _TOPICS, name_topic_from(10)),
    ),
    9: Row((rights.DESCRIBE_GROUP, rights.DESCRIBE_TOPIC), groups.guard_fetched_offsets),
    10: Row((rights.DESCRIBE_GROUP, rights.DESCRIBE_TRANSACTION, rights.ACT_FOR_CLUSTER), groups.guard_coordinators),
    11: _READ_GROUP,  # JoinGroup
    12: _READ_GROUP,  # Heartbeat
    13: _READ_GROUP,  # LeaveGroup
    14: _READ_GROUP,  # SyncGroup
    15: Row((rights.DESCRIBE_GROUP,), groups.guard_described_groups),
    16: Row((rights.DESCRIBE_GROUP, rights.DESCRIBE_CLUSTER), groups.guard_group_list),
    19: Row(
        (rights.CREATE_TOPIC, rights.CREATE_ANY_TOPIC, rights.DESCRIBE_TOPIC_CONFIGS),
        topic_changes.guard_new_topics,
    ),
    20: Row(
        (rights.DELETE_TOPIC, rights.DESCRIBE_TOPIC, rights.DELETE_ANY_TOPIC),
        topic_changes.guard_topic_deletion,
    ),
    21: _on_topics(Operation.DELETE, Items(_TOPICS.asked, _TOPICS.answered, {"low_watermark": -1})),
    22: Row((rights.WRITE_TRANSACTION, rights.WRITE_IDEMPOTENTLY, rights.WRITE_TOPIC), whole.guard_new_producer),
    23: Row((rights.DESCRIBE_TOPIC, rights.ACT_FOR_CLUSTER), topics.guard_epochs),
    24: Row(
        (rights.WRITE_TRANSACTION, rights.WRITE_TOPIC, rights.ACT_FOR_CLUSTER), topics.guard_transaction_partitions
    ),
    25: _on_named(_WRITE_TRANSACTION, (Operation.READ, Kind.GROUP, "group_id")),  # AddOffsetsToTxn
    26: _on_named(_WRITE_TRANSACTION),  # EndTxn
    27: Row((rights.ALTER_CLUSTER, rights.ACT_FOR_CLUSTER), whole.guard_markers),
    28: Row(
        (rights.WRITE_TRANSACTION, rights.READ_GROUP, rights.READ_TOPIC),
        groups.guard_commit(
            [(rights.WRITE_TRANSACTION, "transactional_id"), (rights.READ_GROUP, "group_id")],
            _TOPICS,
            name_field("name"),
        ),
    ),
    29: _on_cluster(Operation.DESCRIBE),  # DescribeAcls
    30: _on_cluster(Operation.ALTER, Items(("creations",), ("results",))),  # CreateAcls
    31: _on_cluster(Operation.ALTER, Items(("filters",), ("filter_results",))),  # DeleteAcls
    32: _on_resources(Operation.DESCRIBE_CONFIGS, "results"),
    33: _on_resources(Operation.ALTER_CONFIGS, "responses"),
    34: Row((rights.ALTER_CLUSTER,), whole.guard_moves),
    35: _on_cluster(Operation.DESCRIBE),  # DescribeLogDirs
    37: _on_topics(Operation.ALTER, Items(("topics",), ("results",))),  # CreatePartitions
    38: Row((rights.CREATE_TOKENS,), whole.guard_new_token),
    42: Row(
        (rights.DELETE_GROUP,), guard_items(rights.DELETE_GROUP, Items(("groups_names",), ("results",)), name_itself)
    ),
    43: _on_cluster(Operation.ALTER),  # ElectLeaders
    44: _on_resources(Operation.ALTER_CONFIGS, "responses"),
    45: _on_cluster(Operation.ALTER),  # AlterPartitionReassignments
    46: _on_cluster(Operation.DESCRIBE),  # ListPartitionReassignments
    47: Row((rights.DELETE_GROUP, rights.READ_TOPIC), groups.guard_offset_deletion),
    48: _on_cluster(Operation.DESCRIBE_CONFIGS),  # DescribeClientQuotas
    49: _on_cluster(Operation.ALTER_CONFIGS),  # AlterClientQuotas
    50: _on_cluster(Operation.DESCRIBE),  # DescribeUserScramCredentials
    51: _on_cluster(Operation.ALTER),  # AlterUserScramCredentials
    55: _on_cluster(Operation.DESCRIBE),  # DescribeQuorum
    57: _on_cluster(Operation.ALTER),  # UpdateFeatures
    60: Row((rights.DESCRIBE_CLUSTER,), described_topics.guard_described_cluster),
    61: _on_topics(Operation.READ, Items(("topics", "partition_indexes"), ("topics", "partitions"))),
    64: _on_cluster(Operation.ALTER),  # UnregisterBroker
    65: Row((rights.DESCRIBE_TRANSACTION, rights.DESCRIBE_TOPIC), groups.guard_described_transactions),
    66: Row((rights.DESCRIBE_TRANSACTION,), groups.guard_transaction_list),
    68: Row((rights.READ_GROUP, rights.DESCRIBE_TOPIC), groups.guard_heartbeat),
    69: Row((rights.DESCRIBE_GROUP, rights.DESCRIBE_TOPIC), groups.guard_consumer_groups),
    74: _on_cluster(Operation.DESCRIBE_CONFIGS),  # ListConfigResources
    75: Row((rights.DESCRIBE_TOPIC,), described_topics.guard_topic_pages),
    80: _on_cluster(Operation.ALTER),  # AddRaftVoter
    81: _on_cluster(Operation.ALTER),  # RemoveRaftVoter
    # Requests of controllers and brokers.
    4: _CLUSTER_ACTION,  # LeaderAndIsr
    5: _CLUSTER_ACTION,  # StopReplica
    6: _CLUSTER_ACTION,  # UpdateMetadata
    7: _CLUSTER_ACTION,  # ControlledShutdown
    56: _CLUSTER_ACTION,  # AlterPartition
    58: _CLUSTER_ACTION,  # Envelope
    67: _CLUSTER_ACTION,  # AllocateProducerIds
    10000: _CLUSTER_ACTION,  # ReportTraffic
    10001: _CLUSTER_ACTION,  # ReportStorage
}
"""By API key."""

FETCH_CHECKS = (rights.READ_TOPIC, rights.ACT_FOR_CLUSTER)
"""The rights for Fetch, which its handler asks for: a session has more partitions than the request names."""

FREE = {
    17: "SaslHandshake",
    18: "ApiVersions",
    36: "SaslAuthenticate",
    39: "RenewDelegationToken, which the token's own renewers may send",
    40: "ExpireDelegationToken, which the token's own renewers may send",
    41: "DescribeDelegationToken, whose answer has the client's own tokens",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
}
"""The APIs that ask for no right, as in Kafka."""
