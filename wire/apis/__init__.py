"""Requests and responses of all Apache Kafka releases, with one module for each API.

The package imports a module when `api` first returns its messages, because a broker uses only a few of them.

These fields have the same meaning in all messages, so the modules do not explain them again::

    name, topic, topic_name     the name of a topic; empty or null if topic_id identifies the topic
    topic_id                    the id of a topic until its deletion, never reused for a topic of the same name; 0: none
    partition_index, partition  the number of a partition of the topic, from 0, as in lists of partitions
    error_code                  a wire.errors.ErrorCode; 0: no error
    error_message               a readable explanation of the error; null: none
    throttle_time_ms            the delay of the client because it exceeds its quota; 0: no delay
    host, port, rack            the address of a broker, and its location (null: not reported)
    broker_id, node_id          the id of a broker, as in lists of replicas, or of a controller
    broker_epoch                the number of a broker's registration; -1: unknown
    leader_epoch                a number that rises with each new leader of a partition; -1: unknown
    group_id, member_id         the id of a group, and of a member in it (empty: not yet assigned)
    group_instance_id           the id that a static member chooses itself (KIP-345); null: none
    generation_id               a number that rises with each rebalance of a classic group; -1: no group membership
    transactional_id            the id that a producer keeps across restarts
    producer_id, producer_epoch the number assigned to a producer, and its epoch; brokers fence an older epoch
    timeout_ms                  the time limit for the response
    validate_only               checks the request and changes nothing
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import NamedTuple

from kafkacompat.wire.schema import Request, Response


class Api(NamedTuple):
    """The two messages of one API."""

    request: type[Request]
    response: type[Response]


API_NAMES: dict[int, str] = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    4: "leader_and_isr",
    5: "stop_replica",
    6: "update_metadata",
    7: "controlled_shutdown",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    34: "alter_replica_log_dirs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    38: "create_delegation_token",
    39: "renew_delegation_token",
    40: "expire_delegation_token",
    41: "describe_delegation_token",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    48: "describe_client_quotas",
    49: "alter_client_quotas",
    50: "describe_user_scram_credentials",
    51: "alter_user_scram_credentials",
    52: "vote",
    53: "begin_quorum_epoch",
    54: "end_quorum_epoch",
    55: "describe_quorum",
    56: "alter_partition",
    57: "update_features",
    58: "envelope",
    59: "fetch_snapshot",
    60: "describe_cluster",
    61: "describe_producers",
    62: "broker_registration",
    63: "broker_heartbeat",
    64: "unregister_broker",
    65: "describe_transactions",
    66: "list_transactions",
    67: "allocate_producer_ids",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    70: "controller_registration",
    71: "get_telemetry_subscriptions",
    72: "push_telemetry",
    73: "assign_replicas_to_dirs",
    74: "list_config_resources",
    75: "describe_topic_partitions",
    76: "share_group_heartbeat",
    77: "share_group_describe",
    78: "share_fetch",
    79: "share_acknowledge",
    80: "add_raft_voter",
    81: "remove_raft_voter",
    82: "update_raft_voter",
    83: "initialize_share_group_state",
    84: "read_share_group_state",
    85: "write_share_group_state",
    86: "delete_share_group_state",
    87: "read_share_group_state_summary",
    88: "streams_group_heartbeat",
    89: "streams_group_describe",
    90: "describe_share_group_offsets",
    91: "alter_share_group_offsets",
    92: "delete_share_group_offsets",
}
"""API key -> name, in ascending order. The module, its classes and the handler's module derive their names from it."""

OWN_API_NAMES: dict[int, str] = {
    10000: "report_traffic",
    10001: "report_storage",
}
"""The same for APIs between brokers that no Kafka release has. Kafka will hardly ever have so many."""


def find_api_name(key: int) -> str:
    """Return the name of an API; raises KeyError for an unknown key."""
    return API_NAMES[key] if key in API_NAMES else OWN_API_NAMES[key]


@cache
def find_api(key: int) -> Api:
    """Return the messages of one API; raises KeyError for an unknown key."""
    name = find_api_name(key)
    module = import_module(f"kafkacompat.wire.apis.{name}")
    title = name.title().replace("_", "")
    return Api(getattr(module, f"{title}Request"), getattr(module, f"{title}Response"))
