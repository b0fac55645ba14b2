"""One question for each API, about resources that a client may have rights on and others that it has none on.

The names of the former begin with ALLOWED, and rights on them are rights on this prefix. ``{scenario}`` in a name is replaced by the
scenario's own name, so that questions that change something do not meet. A topic id is written ``id:TOPIC``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kafkacompat.security.acls.model import AclOperation as Operation
from kafkacompat.security.acls.model import AclResourceType as Kind
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.batch_records import NewRecord, build_batch
from kafkacompat.wire.schema import Request, Struct

ALLOWED = "allowed"
HERE, AWAY = "allowed-here", "allowed-away"
HIDDEN, HIDDEN_AWAY = "hidden-here", "hidden-away"
TOPICS = (HERE, AWAY, HIDDEN, HIDDEN_AWAY)
EXISTING = (HERE, HIDDEN)
TO_DELETE = "allowed-delete-{scenario}"
GROUPS = ("allowed-group", "hidden-group")
TRANSACTIONS = ("allowed-transaction", "hidden-transaction")
UNKNOWN_ID = bytes(range(16))

NOW_MS = 1_700_000_000_000
Right = tuple[Operation, Kind]


class Question(NamedTuple):
    """A request of one API, as nested dictionaries, and the rights that its answer depends on."""

    name: str
    api_key: int
    version: int
    fields: Mapping[str, Any]
    rights: Sequence[Right]


def _batch(producer: tuple[int, int] | None = None) -> bytes:
    records: list[NewRecord] = [(NOW_MS, b"key", b"value", [])]
    if producer is None:
        return build_batch(records)
    return build_batch(
        records, producer_id=producer[0], producer_epoch=producer[1], base_sequence=0, transactional=True
    )


def _list_topics(key: str = "name", names: Sequence[str] = TOPICS, **partition: Any) -> list[dict[str, Any]]:
    """Return each topic with its partition 0."""
    return [{key: name, "partitions": [dict(partition)]} for name in names]


def _list_ids(**partition: Any) -> list[dict[str, Any]]:
    known = [{"topic_id": f"id:{name}", "partitions": [dict(partition)]} for name in EXISTING]
    return [*known, {"topic_id": UNKNOWN_ID, "partitions": [dict(partition)]}]


_OFFSET = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
_CONFIG_RESOURCES = [
    {"resource_type": 2, "resource_name": HERE},
    {"resource_type": 2, "resource_name": HIDDEN},
    {"resource_type": 2, "resource_name": HIDDEN_AWAY},
    {"resource_type": 4, "resource_name": "1"},
    {"resource_type": 4, "resource_name": ""},
    {"resource_type": 32, "resource_name": "allowed-group"},
    {"resource_type": 32, "resource_name": "hidden-group"},
    {"resource_type": 16, "resource_name": "metrics"},
]
_CHANGED = [
    {"resource_type": 2, "resource_name": HERE, "configs": [{"name": "retention.ms", "value": "1000000"}]},
    {"resource_type": 2, "resource_name": HIDDEN, "configs": [{"name": "retention.ms", "value": "1000000"}]},
    {"resource_type": 2, "resource_name": HIDDEN_AWAY, "configs": [{"name": "retention.ms", "value": "1000000"}]},
    {"resource_type": 4, "resource_name": "1", "configs": [{"name": "message.max.bytes", "value": "1048588"}]},
    {"resource_type": 32, "resource_name": "allowed-group", "configs": [{"name": "consumer.session.timeout.ms", "value": "50000"}]},
    {"resource_type": 32, "resource_name": "hidden-group", "configs": [{"name": "consumer.session.timeout.ms", "value": "50000"}]},
]  # fmt: skip
_PRODUCED = [{"name": name, "partition_data": [{"index": 0, "records": _batch()}]} for name in TOPICS]
_MEMBER = {"group_id": "{group}", "member_id": "nobody", "generation_id": 1}
_PRODUCER = {"producer_id": 7777, "producer_epoch": 0}
_ON_CONFIGS = (Kind.TOPIC, Kind.GROUP, Kind.CLUSTER)
_READ_GROUP = [(Operation.READ, Kind.GROUP)]
_TRANSACTIONAL = {"index": 0, "records": _batch((7777, 0))}


def _on_cluster(label: str, api_key: int, version: int, right: Operation, /, **fields: Any) -> Question:
    return Question(label, api_key, version, fields, [(right, Kind.CLUSTER)])


QUESTIONS: tuple[Question, ...] = (
    Question(
        "produce", 0, 12, {"acks": -1, "timeout_ms": 30_000, "topic_data": _PRODUCED}, [(Operation.WRITE, Kind.TOPIC)]
    ),
    Question(
        "produce-by-id",
        0,
        13,
        {
            "acks": -1,
            "timeout_ms": 30_000,
            "topic_data": [
                {"topic_id": topic, "partition_data": [{"index": 0, "records": _batch()}]}
                for topic in (f"id:{HERE}", f"id:{HIDDEN}", UNKNOWN_ID)
            ],
        },
        [(Operation.WRITE, Kind.TOPIC)],
    ),
    *(
        Question(
            f"produce-in-{name or 'no'}-transaction",
            0,
            11,
            {
                "acks": -1,
                "timeout_ms": 30_000,
                "transactional_id": name,
                "topic_data": [{"name": HERE, "partition_data": [_TRANSACTIONAL]}],
            },
            [(Operation.WRITE, Kind.TOPIC), (Operation.WRITE, Kind.TRANSACTIONAL_ID)],
        )
        for name in (*TRANSACTIONS, None)
    ),
    *(
        Question(
            f"fetch-{version}",
            1,
            version,
            {
                "max_wait_ms": 0,
                "max_bytes": 1_000_000,
                "topics": [
                    {"topic": name, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]}
                    for name in TOPICS
                ],
            },
            [(Operation.READ, Kind.TOPIC)],
        )
        for version in (4, 12)
    ),
    Question(
        "fetch-by-id",
        1,
        17,
        {
            "max_wait_ms": 0,
            "max_bytes": 1_000_000,
            "topics": [
                {"topic_id": topic, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]}
                for topic in (f"id:{HERE}", f"id:{HIDDEN}", UNKNOWN_ID)
            ],
        },
        [(Operation.READ, Kind.TOPIC)],
    ),
    Question(
        "fetch-of-a-follower",
        1,
        12,
        {
            "replica_id": 9,
            "max_wait_ms": 0,
            "max_bytes": 1_000_000,
            "topics": [{"topic": HIDDEN_AWAY, "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}],
        },
        [(Operation.READ, Kind.TOPIC), (Operation.CLUSTER_ACTION, Kind.CLUSTER)],
    ),
    Question(
        "list-offsets",
        2,
        7,
        {"replica_id": -1, "topics": _list_topics(partition_index=0, timestamp=-2, current_leader_epoch=-1)},
        [(Operation.DESCRIBE, Kind.TOPIC), (Operation.READ, Kind.TOPIC), (Operation.WRITE, Kind.TOPIC)],
    ),
    *(
        Question(
            f"metadata-{version}",
            3,
            version,
            {
                "topics": [{"name": name} for name in TOPICS],
                "allow_auto_topic_creation": False,
                **({"include_topic_authorized_operations": True} if version >= 8 else {}),
                **({"include_cluster_authorized_operations": True} if version in range(8, 11) else {}),
            },
            [
                (Operation.DESCRIBE, Kind.TOPIC),
                (Operation.READ, Kind.TOPIC),
                (Operation.ALTER_CONFIGS, Kind.TOPIC),
                *([(Operation.DESCRIBE, Kind.CLUSTER), (Operation.ALTER, Kind.CLUSTER)] if version == 9 else []),
            ],
        )
        for version in (4, 9, 13)
    ),
    Question(
        "metadata-of-all",
        3,
        12,
        {"topics": None, "include_topic_authorized_operations": True},
        [(Operation.DESCRIBE, Kind.TOPIC), (Operation.DELETE, Kind.TOPIC)],
    ),
    Question(
        "metadata-by-id",
        3,
        12,
        {"topics": [{"name": None, "topic_id": topic} for topic in (f"id:{HERE}", f"id:{HIDDEN}", UNKNOWN_ID)]},
        [(Operation.DESCRIBE, Kind.TOPIC)],
    ),
    Question(
        "metadata-that-creates",
        3,
        9,
        {
            "topics": [{"name": "allowed-auto-{scenario}"}, {"name": "hidden-auto"}],
            "allow_auto_topic_creation": True,
        },
        [(Operation.DESCRIBE, Kind.TOPIC), (Operation.CREATE, Kind.TOPIC), (Operation.CREATE, Kind.CLUSTER)],
    ),
    *(
        Question(
            f"offset-commit-{version}-{group}",
            8,
            version,
            {"group_id": group, "topics": [{"name": name, "partitions": [_OFFSET]} for name in TOPICS]},
            [(Operation.READ, Kind.GROUP), (Operation.READ, Kind.TOPIC)],
        )
        for version in (2, 9)
        for group in GROUPS
    ),
    Question(
        "offset-commit-by-id",
        8,
        10,
        {
            "group_id": "allowed-group",
            "topics": [
                {"topic_id": topic, "partitions": [_OFFSET]} for topic in (f"id:{HERE}", f"id:{HIDDEN}", UNKNOWN_ID)
            ],
        },
        [(Operation.READ, Kind.GROUP), (Operation.READ, Kind.TOPIC)],
    ),
    *(
        Question(
            f"offset-fetch-{version}-{group}",
            9,
            version,
            {"group_id": group, "topics": [{"name": name, "partition_indexes": [0]} for name in TOPICS]},
            [(Operation.DESCRIBE, Kind.GROUP), (Operation.DESCRIBE, Kind.TOPIC)],
        )
        for version in (1, 7)
        for group in GROUPS
    ),
    Question(
        "offset-fetch-of-all",
        9,
        7,
        {"group_id": "allowed-group", "topics": None},
        [(Operation.DESCRIBE, Kind.GROUP), (Operation.DESCRIBE, Kind.TOPIC)],
    ),
    Question(
        "offset-fetch-of-groups",
        9,
        9,
        {
            "groups": [
                {"group_id": "allowed-group", "topics": [{"name": name, "partition_indexes": [0]} for name in TOPICS]},
                {"group_id": "hidden-group", "topics": [{"name": HERE, "partition_indexes": [0]}]},
                {"group_id": "allowed-group-all", "topics": None},
            ]
        },
        [(Operation.DESCRIBE, Kind.GROUP), (Operation.READ, Kind.GROUP), (Operation.DESCRIBE, Kind.TOPIC)],
    ),
    Question(
        "offset-fetch-by-id",
        9,
        10,
        {
            "groups": [
                {
                    "group_id": "allowed-group",
                    "topics": [
                        {"topic_id": topic, "partition_indexes": [0]}
                        for topic in (f"id:{HERE}", f"id:{HIDDEN}", UNKNOWN_ID)
                    ],
                },
                {"group_id": "allowed-group-all", "topics": None},
            ]
        },
        [(Operation.DESCRIBE, Kind.GROUP), (Operation.DESCRIBE, Kind.TOPIC)],
    ),
    *(
        Question(
            f"find-coordinator-{version}-{key_type}{'-hidden' * (version < 4)}",
            10,
            version,
            {"key_type": key_type, **({"key": f"hidden-{version}"} if version < 4 else {"coordinator_keys": names})},
            [(Operation.DESCRIBE, (Kind.GROUP, Kind.TRANSACTIONAL_ID)[key_type])],
        )
        for version in (2, 4)
        for key_type, names in ((0, GROUPS), (1, TRANSACTIONS))
    ),
    # No client names such a key: Kafka rejects it after the check of the right.
    Question(
        "find-coordinator-of-share-group",
        10,
        6,
        {"key_type": 2, "coordinator_keys": ["allowed-group"]},
        [(Operation.CLUSTER_ACTION, Kind.CLUSTER)],
    ),
    Question(
        "find-one-coordinator", 10, 2, {"key_type": 0, "key": "allowed-group"}, [(Operation.DESCRIBE, Kind.GROUP)]
    ),
    *(
        question
        for group in GROUPS
        for question in (
            Question(
                f"join-{group}",
                11,
                7,
                {
                    "group_id": group,
                    "session_timeout_ms": 10_000,
                    "rebalance_timeout_ms": 10_000,
                    "protocol_type": "consumer",
                    "protocols": [{"name": "range", "metadata": b""}],
                },
                _READ_GROUP,
            ),
            Question(f"heartbeat-{group}", 12, 4, {**_MEMBER, "group_id": group}, _READ_GROUP),
            Question(f"leave-{group}", 13, 5, {"group_id": group, "members": [{"member_id": "nobody"}]}, _READ_GROUP),
            Question(
                f"sync-{group}",
                14,
                5,
                {**_MEMBER, "group_id": group, "protocol_type": "consumer", "protocol_name": "range"},
                _READ_GROUP,
            ),
            Question(
                f"consumer-heartbeat-{group}",
                68,
                0,
                {"group_id": f"{group}-new", "member_id": "nobody", "member_epoch": 5},
                _READ_GROUP,
            ),
        )
    ),
    *(
        Question(
            f"consumer-subscription-{topic}",
            68,
            1,
            {
                "group_id": "allowed-group-new",
                "member_id": "nobody",
                "member_epoch": 5,
                "subscribed_topic_names": [HERE, topic],
            },
            [*_READ_GROUP, (Operation.DESCRIBE, Kind.TOPIC)],
        )
        for topic in (AWAY, HIDDEN_AWAY)
    ),
    Question(
        "describe-groups",
        15,
        5,
        {"groups": list(GROUPS), "include_authorized_operations": True},
        [(Operation.DESCRIBE, Kind.GROUP), (Operation.READ, Kind.GROUP), (Operation.DELETE, Kind.GROUP)],
    ),
    Question(
        "describe-consumer-groups",
        69,
        1,
        {"group_ids": ["allowed-consumers", "allowed-hidden-consumers", "hidden-group"], "include_authorized_operations": True},
        [(Operation.DESCRIBE, Kind.GROUP), (Operation.READ, Kind.GROUP), (Operation.DESCRIBE, Kind.TOPIC)],
    ),
    Question("list-groups", 16, 5, {}, [(Operation.DESCRIBE, Kind.CLUSTER), (Operation.DESCRIBE, Kind.GROUP)]),
    Question(
        "create-topics",
        19,
        7,
        {
            "topics": [
                {"name": "allowed-new-{scenario}", "num_partitions": 1, "replication_factor": 1},
                {"name": "allowed-here", "num_partitions": 1, "replication_factor": 1},
                {"name": "hidden-new-{scenario}", "num_partitions": 1, "replication_factor": 1},
                {"name": "hidden-here", "num_partitions": 1, "replication_factor": 1},
            ]
        },
        [(Operation.CREATE, Kind.TOPIC), (Operation.CREATE, Kind.CLUSTER), (Operation.DESCRIBE_CONFIGS, Kind.TOPIC)],
    ),
    Question(
        "delete-topics",
        20,
        5,
        {"topic_names": [TO_DELETE, AWAY, HIDDEN, HIDDEN_AWAY], "timeout_ms": 30_000},
        [(Operation.DELETE, Kind.TOPIC), (Operation.DESCRIBE, Kind.TOPIC)],
    ),
    Question(
        "delete-topics-by-id",
        20,
        6,
        {
            "timeout_ms": 30_000,
            "topics": [
                {"name": None, "topic_id": topic}
                for topic in (f"id:{TO_DELETE}", f"id:{HIDDEN}", UNKNOWN_ID)
            ]
        },
        [(Operation.DELETE, Kind.TOPIC), (Operation.DESCRIBE, Kind.TOPIC)],
    ),
    Question(
        "delete-topics-of-the-cluster",
        20,
        5,
        {"topic_names": [TO_DELETE], "timeout_ms": 30_000},
        [(Operation.DELETE, Kind.CLUSTER)],
    ),
    Question(
        "delete-records",
        21,
        2,
        {"timeout_ms": 30_000, "topics": _list_topics(partition_index=0, offset=0)},
        [(Operation.DELETE, Kind.TOPIC)],
    ),
    *(
        Question(
            f"init-producer-{name or 'without-a-transaction'}",
            22,
            4,
            {"transactional_id": name, "transaction_timeout_ms": 60_000},
            [
                (Operation.WRITE, Kind.TRANSACTIONAL_ID),
                (Operation.IDEMPOTENT_WRITE, Kind.CLUSTER),
                (Operation.WRITE, Kind.TOPIC),
            ],
        )
        for name in ("allowed-init", "hidden-init", None)
    ),
    Question(
        "epochs",
        23,
        4,
        {
            "replica_id": -1,
            "topics": [
                {"topic": name, "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}
                for name in TOPICS
            ],
        },
        [(Operation.DESCRIBE, Kind.TOPIC), (Operation.CLUSTER_ACTION, Kind.CLUSTER)],
    ),
    *(
        Question(
            f"add-partitions-{name}",
            24,
            3,
            {
                "v3_and_below_transactional_id": name,
                "v3_and_below_producer_id": 7777,
                "v3_and_below_producer_epoch": 0,
                "v3_and_below_topics": [{"name": topic, "partitions": [0]} for topic in named],
            },
            [(Operation.WRITE, Kind.TRANSACTIONAL_ID), (Operation.WRITE, Kind.TOPIC)],
        )
        for name, named in zip(TRANSACTIONS, (TOPICS, (HERE,)), strict=True)
    ),
    Question(
        "add-partitions-of-a-broker",
        24,
        4,
        {
            "transactions": [
                {
                    "transactional_id": "hidden-transaction",
                    **_PRODUCER,
                    "verify_only": True,
                    "topics": [{"name": HIDDEN, "partitions": [0]}],
                }
            ]
        },
        [(Operation.CLUSTER_ACTION, Kind.CLUSTER)],
    ),
    *(
        Question(
            f"add-offsets-{name}-{group}",
            25,
            3,
            {"transactional_id": name, **_PRODUCER, "group_id": group},
            [(Operation.WRITE, Kind.TRANSACTIONAL_ID), (Operation.READ, Kind.GROUP)],
        )
        for name, group in zip(TRANSACTIONS, GROUPS, strict=True)
    ),
    *(
        Question(
            f"end-{name}",
            26,
            3,
            {"transactional_id": name, **_PRODUCER, "committed": True},
            [(Operation.WRITE, Kind.TRANSACTIONAL_ID)],
        )
        for name in TRANSACTIONS
    ),
    Question(
        "markers",
        27,
        1,
        {
            "markers": [
                {**_PRODUCER, "coordinator_epoch": 0, "topics": [{"name": "hidden-away", "partition_indexes": [0, 1]}]}
            ]
        },
        [(Operation.ALTER, Kind.CLUSTER), (Operation.CLUSTER_ACTION, Kind.CLUSTER)],
    ),
    *(
        Question(
            f"commit-in-{name}-{group}",
            28,
            3,
            {
                "transactional_id": name,
                "group_id": group,
                **_PRODUCER,
                "topics": [{"name": topic, "partitions": [_OFFSET]} for topic in TOPICS],
            },
            [(Operation.WRITE, Kind.TRANSACTIONAL_ID), (Operation.READ, Kind.GROUP), (Operation.READ, Kind.TOPIC)],
        )
        for name, group in (*zip(TRANSACTIONS, GROUPS, strict=True), ("allowed-transaction", "hidden-group"))
    ),
    _on_cluster(
        "describe-acls",
        29,
        3,
        Operation.DESCRIBE,
        resource_type_filter=2,
        resource_name_filter="nothing",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    ),
    _on_cluster(
        "create-acls",
        30,
        3,
        Operation.ALTER,
        creations=[
            {
                "resource_type": 2,
                "resource_name": name,
                "resource_pattern_type": 3,
                "principal": "User:nobody",
                "host": "*",
                "operation": 3,
                "permission_type": 3,
            }
            for name in ("nothing-{scenario}", "")
        ],
    ),
    _on_cluster(
        "delete-acls",
        31,
        3,
        Operation.ALTER,
        filters=[
            {
                "resource_type_filter": 2,
                "resource_name_filter": "nobody-has-this",
                "pattern_type_filter": 3,
                "principal_filter": None,
                "host_filter": None,
                "operation": 1,
                "permission_type": 1,
            }
        ],
    ),
    Question(
        "describe-configs",
        32,
        4,
        {"resources": [{**resource, "configuration_keys": ["retention.ms"]} for resource in _CONFIG_RESOURCES]},
        [(Operation.DESCRIBE_CONFIGS, kind) for kind in _ON_CONFIGS],
    ),
    Question(
        "alter-configs",
        33,
        2,
        {"resources": _CHANGED, "validate_only": True},
        [(Operation.ALTER_CONFIGS, kind) for kind in _ON_CONFIGS],
    ),
    Question(
        "incremental-alter-configs",
        44,
        1,
        {"resources": _CHANGED, "validate_only": True},
        [(Operation.ALTER_CONFIGS, kind) for kind in _ON_CONFIGS],
    ),
    _on_cluster(
        "move",
        34,
        2,
        Operation.ALTER,
        dirs=[{"path": "/nowhere", "topics": [{"name": "hidden-away", "partitions": [0]}]}],
    ),
    _on_cluster("log-dirs", 35, 4, Operation.DESCRIBE, topics=[]),
    _on_cluster("old-log-dirs", 35, 1, Operation.DESCRIBE, topics=[]),
    Question(
        "create-partitions",
        37,
        3,
        {"topics": [{"name": name, "count": 1, "assignments": None} for name in TOPICS], "timeout_ms": 30_000},
        [(Operation.ALTER, Kind.TOPIC)],
    ),
    Question(
        "delete-groups",
        42,
        2,
        {"groups_names": ["allowed-nobody", "hidden-nobody"]},
        [(Operation.DELETE, Kind.GROUP)],
    ),
    _on_cluster(
        "elect",
        43,
        2,
        Operation.ALTER,
        election_type=0,
        topic_partitions=[{"topic": HIDDEN_AWAY, "partitions": [0]}],
        timeout_ms=30_000,
    ),
    _on_cluster(
        "reassign",
        45,
        0,
        Operation.ALTER,
        timeout_ms=30_000,
        topics=[{"name": HIDDEN_AWAY, "partitions": [{"partition_index": 0, "replicas": [1]}]}],
    ),
    _on_cluster("list-reassignments", 46, 0, Operation.DESCRIBE, timeout_ms=30_000, topics=None),
    *(
        Question(
            f"delete-offsets-{group}",
            47,
            0,
            {"group_id": group, "topics": _list_topics(partition_index=0)},
            [(Operation.DELETE, Kind.GROUP), (Operation.READ, Kind.TOPIC)],
        )
        for group in GROUPS
    ),
    _on_cluster("describe-quotas", 48, 1, Operation.DESCRIBE_CONFIGS, components=[]),
    _on_cluster(
        "alter-quotas",
        49,
        1,
        Operation.ALTER_CONFIGS,
        entries=[
            {
                "entity": [{"entity_type": "user", "entity_name": "nobody"}],
                "ops": [{"key": "producer_byte_rate", "value": 1e9, "remove": False}],
            }
        ],
        validate_only=True,
    ),
    _on_cluster("describe-scram", 50, 0, Operation.DESCRIBE, users=[{"name": "nobody"}]),
    _on_cluster("alter-scram", 51, 0, Operation.ALTER, deletions=[{"name": "nobody", "mechanism": 1}]),
    _on_cluster(
        "describe-quorum",
        55,
        1,
        Operation.DESCRIBE,
        topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}],
    ),
    _on_cluster(
        "update-features",
        57,
        1,
        Operation.ALTER,
        timeout_ms=30_000,
        feature_updates=[{"feature": "nothing.version", "max_version_level": 1, "upgrade_type": 1}],
        validate_only=True,
    ),
    Question(
        "describe-cluster",
        60,
        1,
        {"include_cluster_authorized_operations": True},
        [(Operation.DESCRIBE, Kind.CLUSTER), (Operation.ALTER, Kind.CLUSTER), (Operation.CREATE, Kind.CLUSTER)],
    ),
    Question(
        "describe-producers",
        61,
        0,
        {"topics": [{"name": name, "partition_indexes": [0]} for name in TOPICS]},
        [(Operation.READ, Kind.TOPIC)],
    ),
    _on_cluster("unregister", 64, 0, Operation.ALTER, broker_id=99),
    Question(
        "describe-transactions",
        65,
        0,
        {"transactional_ids": [*TRANSACTIONS, "allowed-open"]},
        [(Operation.DESCRIBE, Kind.TRANSACTIONAL_ID), (Operation.DESCRIBE, Kind.TOPIC)],
    ),
    Question("list-transactions", 66, 1, {}, [(Operation.DESCRIBE, Kind.TRANSACTIONAL_ID)]),
    _on_cluster("list-configs", 74, 1, Operation.DESCRIBE_CONFIGS, resource_types=[16]),
    Question(
        "describe-topic-partitions",
        75,
        0,
        {"topics": [{"name": name} for name in TOPICS]},
        [(Operation.DESCRIBE, Kind.TOPIC), (Operation.WRITE, Kind.TOPIC)],
    ),
    Question("describe-all-topic-partitions", 75, 0, {"topics": []}, [(Operation.DESCRIBE, Kind.TOPIC)]),
    _on_cluster("add-voter", 80, 0, Operation.ALTER, cluster_id=None, voter_id=9, timeout_ms=1000),
    _on_cluster("remove-voter", 81, 0, Operation.ALTER, cluster_id=None, voter_id=9),
)  # fmt: skip


def build_request(question: Question, scenario: str, topic_ids: Mapping[str, bytes]) -> Request:
    """Return the request of a question in one scenario."""

    def convert(value: Any, struct: Any) -> Any:
        if isinstance(value, str):
            text = value.replace("{scenario}", scenario)
            return topic_ids[text.removeprefix("id:")] if text.startswith("id:") else text
        if isinstance(value, list):
            return [convert(item, struct) for item in value]
        return make(struct, value) if isinstance(value, dict) else value

    def make(struct: Any, fields: Mapping[str, Any]) -> Any:
        values = {}
        for name, value in fields.items():
            field = struct.FIELDS[name]
            values[name] = convert(value, field.element.struct if field.element else field.struct)
        return struct(**values)

    request: Request = make(find_api(question.api_key).request, question.fields)
    return request


NAMES = (
    "name", "topic", "topic_name", "group_id", "transactional_id", "key", "resource_type", "resource_name", "user",
    "partition_index", "index", "partition", "partition_id", "partitions", "partition_indexes", "entity_name",
)  # fmt: skip
FINDINGS = (
    "error_code", "partition_error_code", "topic_config_error_code", "topic_authorized_operations",
    "cluster_authorized_operations", "authorized_operations", "is_internal", "num_partitions", "replication_factor",
)  # fmt: skip


def summarize(response: Any, topic_ids: Mapping[bytes, str]) -> Any:
    """Return what an answer says of rights: names, errors and operations, with lists in the order of their texts."""
    if isinstance(response, list):
        return sorted((summarize(item, topic_ids) for item in response), key=str)
    if not isinstance(response, Struct):
        return response
    summary: dict[str, Any] = {}
    for name, value in vars(response).items():
        if isinstance(value, (list, Struct)) and name not in (
            "brokers",
            "configs",
            "leader",
            "node_endpoints",
            "replica_nodes",
            "isr_nodes",
        ):
            part = summarize(value, topic_ids)
            if part not in ([], {}):
                summary[name] = part
        elif name == "topic_id":
            summary[name] = "none" if not any(value) else topic_ids.get(bytes(value), "another")
        elif name in NAMES or name in FINDINGS:
            summary[name] = value
    return summary
