"""Access rules: added, described and removed over a real controller and a store in memory."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import fail

from kafkacompat.metadata.codec import decode_image
from kafkacompat.metadata.store import StoreError
from kafkacompat.security.acls.authorizer import Authorizer
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from kafkacompat.wire.apis.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.handlers.admin_node import AdminNode
from tests.kafkacompat.metadata.deferreds import outcome

INVALID = ErrorCode.INVALID_REQUEST


class AclNode(AdminNode):
    """A node with an authorizer."""

    def __init__(self) -> None:
        super().__init__()
        self.services.authorizer = Authorizer(lambda: self.holder.image.acls)

    def create(self, *rules: AclCreation, version: int = 3) -> list[int]:
        response = self.ask(CreateAclsRequest(creations=list(rules)), CreateAclsResponse, version)
        return [result.error_code for result in response.results]

    def describe(self, version: int = 3, **fields: Any) -> list[tuple[Any, ...]]:
        response = self.ask(DescribeAclsRequest(**{**anything(), **fields}), DescribeAclsResponse, version)
        assert response.error_code == 0, response
        return sorted(
            (resource.resource_type, resource.resource_name, resource.pattern_type, *vars(acl).values())
            for resource in response.resources
            for acl in resource.acls
        )

    def delete(self, **fields: Any) -> Any:
        selection = DeleteAclsFilter(**{**anything(), **fields})
        return self.ask(DeleteAclsRequest(filters=[selection]), DeleteAclsResponse, 3).filter_results[0]


def anything() -> dict[str, Any]:
    texts = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
    return {**texts, "resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}


def rule(name: str = "orders", **fields: Any) -> AclCreation:
    given = {
        "resource_type": 2,
        "resource_pattern_type": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return AclCreation(resource_name=name, **{**given, **fields})


def test_rules_are_added_described_and_removed() -> None:
    node = AclNode()
    prefixed = rule("or", resource_pattern_type=4, permission_type=2, host="10.0.0.1")
    assert node.create(rule(), rule(operation=4), prefixed, rule()) == [0, 0, 0, 0]
    assert node.describe() == [
        (2, "or", 4, "User:alice", "10.0.0.1", 3, 2),
        (2, "orders", 3, "User:alice", "*", 3, 3),
        (2, "orders", 3, "User:alice", "*", 4, 3),
    ]
    assert len(node.describe(resource_name_filter="orders", resource_type_filter=2, pattern_type_filter=2)) == 3
    deleted = node.delete(resource_name_filter="orders", operation=4)
    assert [(acl.resource_name, acl.operation, acl.error_code) for acl in deleted.matching_acls] == [("orders", 4, 0)]
    assert len(node.describe()) == 2
    assert node.delete(resource_name_filter="nothing").matching_acls == []


def test_rules_are_in_the_store() -> None:
    node = AclNode()
    node.create(rule(), rule("a/b..%", resource_pattern_type=4), rule("."), rule("grüße", resource_type=3))
    image = decode_image(outcome(node.store.load()))
    assert image.acls == node.holder.image.acls and len(image.acls) == 4
    node.delete()
    assert len(decode_image(outcome(node.store.load())).acls) == 0
    assert not any("acl" in key for key in outcome(node.store.load()))


def test_version_0_has_literal_patterns() -> None:
    node = AclNode()
    node.create(rule(), version=0)
    node.create(rule("or", resource_pattern_type=4))
    assert node.describe(version=0, pattern_type_filter=3) == [(2, "orders", 3, "User:alice", "*", 3, 3)]


@pytest.mark.parametrize(
    "fields",
    [
        {"resource_type": 0},
        {"resource_type": 1},
        {"resource_type": 9},
        {"resource_pattern_type": 1},
        {"resource_pattern_type": 2},
        {"operation": 0},
        {"operation": 1},
        {"permission_type": 1},
        {"name": ""},
        {"principal": "alice"},
        {"principal": ""},
        {"host": ""},
        {"resource_type": 4, "name": "my-cluster"},
    ],
)
def test_one_invalid_rule_leaves_the_others_alone(fields: dict[str, Any]) -> None:
    node = AclNode()
    assert node.create(rule("first"), rule(**{"name": "orders", **fields}), rule("last")) == [0, INVALID, 0]
    assert [line[1] for line in node.describe()] == ["first", "last"]


def test_an_invalid_filter_leaves_the_others_alone() -> None:
    node = AclNode()
    node.create(rule())
    filters = [DeleteAclsFilter(**{**anything(), "operation": 99}), DeleteAclsFilter(**anything())]
    results = node.ask(DeleteAclsRequest(filters=filters), DeleteAclsResponse, 3).filter_results
    assert [(result.error_code, len(result.matching_acls)) for result in results] == [(INVALID, 0), (0, 1)]
    with pytest.raises(KafkaError):
        node.ask(DescribeAclsRequest(**{**anything(), "operation": 99}), DescribeAclsResponse, 3)


def test_a_rule_that_two_filters_select_is_in_both_results() -> None:
    node = AclNode()
    node.create(rule())
    filters = [DeleteAclsFilter(**anything()), DeleteAclsFilter(**{**anything(), "operation": 3})]
    results = node.ask(DeleteAclsRequest(filters=filters), DeleteAclsResponse, 3).filter_results
    assert [len(result.matching_acls) for result in results] == [1, 1]


def test_too_many_changes_are_refused() -> None:
    node = AclNode()
    many = [rule(f"t{number}") for number in range(10_001)]
    assert set(node.create(*many)) == {ErrorCode.POLICY_VIOLATION}
    assert node.describe() == []


def test_a_store_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    node = AclNode()
    monkeypatch.setattr(node.store, "compare_and_set", lambda changes: fail(StoreError("the disk is full")))
    assert node.create(rule()) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert node.describe() == []
