"""Access rules in a cluster: made at any broker, kept in ZooKeeper as Kafka keeps them, and followed by all brokers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkacompat.security.acls.model import AclResourceType
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafkacompat.wire.apis.describe_acls import DescribeAclsRequest
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.three_brokers.support import CHROOT, NODES, Cluster
from tests.kafkacompat.three_brokers.test_leaders import assert_replicas_agree

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
ALL, READ, WRITE, DESCRIBE = 2, 3, 4, 8
DENY, ALLOW = 2, 3
TOPIC, CLUSTER = 2, 4
LITERAL, PREFIXED = 3, 4
CHANGES = f"{CHROOT}/kafka-acl-changes"


def make_cluster() -> Cluster:
    """A cluster with an authorizer, whose brokers may do everything."""
    cluster = Cluster(authorizer_class_name=AUTHORIZER, allow_everyone_if_no_acl_found="true")
    rules = [
        make_rule("kafka-cluster" if kind == CLUSTER else "*", kind=kind, host=f"broker-{node}", operation=ALL)
        for kind in AclResourceType
        for node in NODES
    ]
    # Everybody may still change rules.
    rules += [make_rule("kafka-cluster", kind=CLUSTER, operation=ALL)]
    create_rules(cluster, NODES[0], *rules)
    return cluster


def make_rule(
    name: str,
    *,
    kind: int = TOPIC,
    pattern: int = LITERAL,
    host: str = "*",
    operation: int = READ,
    permission: int = ALLOW,
) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal="User:ANONYMOUS",
        host=host,
        operation=operation,
        permission_type=permission,
    )


def create_rules(cluster: Cluster, node: int, *rules: AclCreation) -> None:
    created = cluster.ask(node, CreateAclsRequest(creations=list(rules)))
    assert [result.error_code for result in created.results] == [0] * len(rules), created
    wait_until_agreed(cluster)


def wait_until_agreed(cluster: Cluster) -> None:
    """Wait until all brokers follow what the controller has written."""
    member = cluster.side(cluster.controller()).member
    assert member._active is not None
    active = member._active
    cluster.wait(lambda: all(broker.metadata.image.acls == active.image.acls for broker in cluster.brokers.values()))


def delete_rules(cluster: Cluster, node: int, name: str) -> Any:
    selection = DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter=name,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    deleted = cluster.ask(node, DeleteAclsRequest(filters=[selection])).filter_results[0]
    wait_until_agreed(cluster)
    return deleted


def error_of(cluster: Cluster, node: int, topic: str) -> ErrorCode:
    return ErrorCode(cluster.describe(node, topic).error_code)


def others(cluster: Cluster) -> list[int]:
    return [node for node in NODES if node != cluster.controller()]


def test_rules_made_at_any_broker_hold_at_all() -> None:
    cluster = make_cluster()
    create_rules(cluster, others(cluster)[0], make_rule("*", operation=ALL, permission=ALLOW))
    cluster.create("t")
    leader = cluster.wait_for_leader("t")
    cluster.produce(leader, "t", b"before")
    create_rules(cluster, others(cluster)[1], make_rule("t", operation=WRITE, permission=DENY))
    refused = cluster.ask(leader, cluster.build_produce("t", b"refused")).responses[0].partition_responses[0]
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    create_rules(cluster, NODES[0], make_rule("t", operation=DESCRIBE, permission=DENY))
    assert {error_of(cluster, node, "t") for node in NODES} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert len(delete_rules(cluster, others(cluster)[0], "t").matching_acls) == 2
    assert {error_of(cluster, node, "t") for node in NODES} == {ErrorCode.NONE}
    cluster.produce(leader, "t", b"after")
    assert cluster.read(leader, "t") == [b"before", b"after"]
    assert_replicas_agree(cluster, "t")


def test_the_znodes_are_kafkas() -> None:
    cluster = make_cluster()
    create_rules(
        cluster,
        NODES[0],
        make_rule("orders", host="10.0.0.1"),
        make_rule("a/b", pattern=PREFIXED, operation=ALL, permission=DENY),
    )
    tree = cluster.zookeeper.contents()
    rule = {"principal": "User:ANONYMOUS", "permissionType": "Allow", "operation": "Read", "host": "10.0.0.1"}
    assert json.loads(tree[f"{CHROOT}/kafka-acl/Topic/orders"]) == {"version": 1, "acls": [rule]}
    denied = json.loads(tree[f"{CHROOT}/kafka-acl-extended/prefixed/Topic/a%2Fb"])["acls"]
    assert (denied[0]["permissionType"], denied[0]["operation"]) == ("Deny", "All")
    announced = [value for path, value in sorted(tree.items()) if path.startswith(f"{CHANGES}/")]
    assert announced[-1] == b"TOPIC:orders" and b"CLUSTER:kafka-cluster" in announced
    (extended,) = (value for path, value in tree.items() if "/kafka-acl-extended-changes/" in path)
    assert json.loads(extended)["name"] == "a/b"
    delete_rules(cluster, NODES[0], "orders")
    assert f"{CHROOT}/kafka-acl/Topic/orders" not in cluster.zookeeper.contents()


def test_rules_survive_the_brokers() -> None:
    cluster = make_cluster()
    create_rules(cluster, NODES[0], make_rule("*", operation=ALL), make_rule("t", operation=ALL, permission=DENY))
    table = cluster.brokers[2].metadata.image.acls
    cluster.stop(2)
    cluster.start(2)
    assert cluster.brokers[2].metadata.image.acls == table
    assert error_of(cluster, 2, "t") is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    cluster.kill(cluster.controller())
    cluster.wait(lambda: cluster.controller() > 0)
    survivor = cluster.any_node()
    assert len(delete_rules(cluster, survivor, "t").matching_acls) == 1
    assert error_of(cluster, survivor, "t") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def write_as_a_tool(cluster: Cluster, name: str, value: bytes) -> None:
    """Write rules as kafka-acls with ZooKeeper does, from beside the brokers."""
    client = cluster.zookeeper.connect(cluster.clock, CHROOT)
    cluster.run(client.start())
    path = f"/kafka-acl/Topic/{name}"
    existing = cluster.run(client.exists(path))
    if existing is None:
        cluster.run(client.create(path, value))
    else:
        cluster.run(client.set(path, value, -1))
    cluster.run(client.create("/kafka-acl-changes/acl_changes_", f"TOPIC:{name}".encode(), sequence=True))
    cluster.advance(1)
    cluster.run(client.close())


def test_rules_of_old_tools_are_followed(caplog: pytest.LogCaptureFixture) -> None:
    cluster = make_cluster()
    create_rules(cluster, NODES[0], make_rule("*", operation=ALL))
    rule = {"principal": "User:ANONYMOUS", "permissionType": "Deny", "operation": "All", "host": "*"}
    value = {"version": 1, "acls": [rule], "unknown": 7}
    write_as_a_tool(cluster, "50%", json.dumps(value).encode())
    write_as_a_tool(cluster, "t", json.dumps(value).encode())
    assert {error_of(cluster, node, "t") for node in NODES} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    # What is damaged leaves the last sound rules in effect.
    write_as_a_tool(cluster, "t", b"{}")
    assert {error_of(cluster, node, "t") for node in NODES} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert "the last sound ones stay" in caplog.text
    write_as_a_tool(cluster, "t", json.dumps(value).encode())
    # The controller has not read the tool's rules yet: it reads them when they are in its way.
    create_rules(cluster, others(cluster)[0], make_rule("t", host="10.0.0.1"), make_rule("50%", host="10.0.0.1"))
    tree = cluster.zookeeper.contents()
    for name in ("t", "50%"):
        kept = json.loads(tree[f"{CHROOT}/kafka-acl/Topic/{name}"])
        assert (len(kept["acls"]), kept["unknown"]) == (2, 7)


def test_old_notifications_are_removed() -> None:
    cluster = make_cluster()
    create_rules(cluster, NODES[0], make_rule("a"))
    cluster.advance(16 * 60)
    create_rules(cluster, NODES[0], make_rule("b"))
    cluster.advance(1)
    left = [value for path, value in cluster.zookeeper.contents().items() if path.startswith(f"{CHANGES}/")]
    assert left == [b"TOPIC:b"]


def test_brokers_without_an_authorizer_keep_no_rules() -> None:
    cluster = Cluster()
    created = cluster.ask(others(cluster)[0], CreateAclsRequest(creations=[make_rule("a")]))
    assert created.results[0].error_code == ErrorCode.SECURITY_DISABLED
    described = cluster.ask(NODES[0], DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1))
    assert described.error_code == ErrorCode.SECURITY_DISABLED
    assert not any("kafka-acl" in path for path in cluster.zookeeper.contents())


def test_only_brokers_send_orders() -> None:
    """A client without ClusterAction is refused on the listener of the brokers."""
    cluster = make_cluster()
    cluster.create("t")
    create_rules(
        cluster, NODES[0], make_rule("kafka-cluster", kind=CLUSTER, operation=9, permission=DENY, host="client-99")
    )
    from kafkacompat.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest

    cluster.clients = 98
    refused = cluster.ask(cluster.controller(), AllocateProducerIdsRequest(broker_id=1, broker_epoch=1))
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
