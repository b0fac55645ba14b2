"""Paths are built and recognized by one table."""

from __future__ import annotations

import pytest

from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes.paths import (
    ACL_PATHS,
    PERSISTENT_PATHS,
    Znode,
    decode_name,
    encode_group,
    encode_name,
    identify_path,
    parse_sequence_number,
)

EXAMPLES = [
    (Znode.CONTROLLER, "/controller", {}),
    (Znode.BROKER, "/brokers/ids/17", {"node_id": "17"}),
    (Znode.TOPIC, "/brokers/topics/a.b_c-d", {"topic": "a.b_c-d"}),
    (Znode.PARTITION_STATE, "/brokers/topics/t/partitions/3/state", {"topic": "t", "partition": "3"}),
    (Znode.CONFIG_CHANGES, "/config/changes", {}),
    (Znode.CONFIG_CHANGE, "/config/changes/config_change_0000000007", {"sequence": "0000000007"}),
    (Znode.CONFIG_KIND, "/config/users", {"kind": "users"}),
    (Znode.CONFIG, "/config/brokers/<default>", {"kind": "brokers", "name": "<default>"}),
    (Znode.CLIENT_OF_USER, "/config/users/a%20b/clients/c", {"user": "a%20b", "client_id": "c"}),
    (Znode.DELETED_TOPIC, "/admin/delete_topics/t", {"topic": "t"}),
    (Znode.ISR_CHANGE, "/isr_change_notification/isr_change_0000000000", {"sequence": "0000000000"}),
    (
        Znode.LOG_DIR_EVENT,
        "/log_dir_event_notification/log_dir_event_0000000012",
        {"sequence": "0000000012"},
    ),
    (Znode.CONSUMER_OFFSET, "/consumers/g/offsets/t/0", {"group": "g", "topic": "t", "partition": "0"}),
    (Znode.ACLS, "/kafka-acl/Topic/t", {"resource_type": "Topic", "name": "t"}),
    (
        Znode.EXTENDED_ACLS,
        "/kafka-acl-extended/prefixed/Topic/t",
        {"pattern_type": "prefixed", "resource_type": "Topic", "name": "t"},
    ),
]


@pytest.mark.parametrize(("znode", "path", "names"), EXAMPLES, ids=lambda value: str(value))
def test_a_path_is_built_and_recognized(znode: Znode, path: str, names: dict[str, str]) -> None:
    assert znode.path(**names) == path
    assert identify_path(path) == (znode, names)


@pytest.mark.parametrize("path", ["/", "", "/zookeeper/quota", "/brokers", "/brokers/topics/t/partitions/0/state/x"])
def test_a_path_of_no_kind(path: str) -> None:
    assert identify_path(path) is None


def test_the_paths_of_a_start_are_those_of_kafka_in_its_order() -> None:
    assert PERSISTENT_PATHS == (
        "/consumers",
        "/brokers/ids",
        "/brokers/topics",
        "/config/changes",
        "/admin/delete_topics",
        "/brokers/seqid",
        "/isr_change_notification",
        "/latest_producer_id_block",
        "/log_dir_event_notification",
        "/config/topics",
        "/config/clients",
        "/config/users",
        "/config/brokers",
        "/config/ips",
    )
    assert "/kafka-acl/TransactionalId" in ACL_PATHS and "/kafka-acl-extended/prefixed/User" in ACL_PATHS


@pytest.mark.parametrize(("number", "text"), [(0, "0000000000"), (2**31 - 1, "2147483647"), (-(2**31), "-2147483648")])
def test_sequence_numbers(number: int, text: str) -> None:
    assert parse_sequence_number(Znode.CONFIG_CHANGE, f"/config/changes/config_change_{text}") == number


@pytest.mark.parametrize(
    "name", ["config_change_", "config_change_x", "config_change_1", "other", "isr_change_0000000001"]
)
def test_a_name_without_a_sequence_number_is_refused(name: str) -> None:
    with pytest.raises(StoreError, match=f"/config/changes/{name} is not a sequential znode"):
        parse_sequence_number(Znode.CONFIG_CHANGE, f"/config/changes/{name}")


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("alice", "alice"),
        ("CN=ä b/c*+~%", "CN%3D%C3%A4%20b%2Fc%2A%2B%7E%25"),
        ("a.b-c_d", "a.b-c_d"),
        ("<default>", "%3Cdefault%3E"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("::1", "%3A%3A1"),
    ],
)
def test_names_are_encoded_as_by_kafka(name: str, encoded: str) -> None:
    assert encode_name(name) == encoded
    assert decode_name(encoded) == name


def test_a_plus_is_a_space_as_in_kafka() -> None:
    assert decode_name("a+b") == "a b"


def test_groups_keep_their_names_where_zookeeper_allows_it_and_never_share_one() -> None:
    groups = ["g", "a group: of_mine", "a/b", "a%2Fb", "%2E", ".", "..", "...", "", "%", "a\nb", "a%0Ab"]
    encoded = [encode_group(group) for group in groups]
    assert encoded[:4] == ["g", "a group: of_mine", "a%2Fb", "a%252Fb"]
    assert len(set(encoded)) == len(groups)
    assert not any("/" in name or "\n" in name or name in ("", ".", "..") for name in encoded)
