"""Access rules of instances: each sees, adds and removes its own, and they decide about its own resources only."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from kafkacompat.wire.apis.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.tenants.tenant_node import BANK, OPERATOR, SHOP, TenantNode
from tests.handlers.test_acls import anything, rule

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, TOKEN, USER = range(2, 8)
ANY, MATCH, LITERAL, PREFIXED = range(1, 5)
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class AclTenants(TenantNode):
    """Two instances on a node with an authorizer."""

    def __init__(self) -> None:
        super().__init__(guarded=True)

    def create(self, instance: str | None, *rules: AclCreation, user: str = "root") -> list[int]:
        request = CreateAclsRequest(creations=list(rules))
        return [result.error_code for result in self.ask_as(instance, request, CreateAclsResponse, 3, user).results]

    def describe(self, instance: str | None, *, user: str = "root", **fields: Any) -> list[tuple[Any, ...]]:
        request = DescribeAclsRequest(**{**anything(), **fields})
        response = self.ask_as(instance, request, DescribeAclsResponse, 3, user)
        assert response.error_code == 0, response
        return sorted(
            (resource.resource_type, resource.resource_name, resource.pattern_type, acl.principal, acl.permission_type)
            for resource in response.resources
            for acl in resource.acls
        )

    def delete(self, instance: str | None, *filters: dict[str, Any], user: str = "root") -> list[list[Any]]:
        request = DeleteAclsRequest(filters=[DeleteAclsFilter(**{**anything(), **fields}) for fields in filters])
        response = self.ask_as(instance, request, DeleteAclsResponse, 3, user)
        assert len(response.filter_results) == len(filters)
        assert not any(result.error_code for result in response.filter_results), response
        return [
            sorted((acl.resource_name, acl.pattern_type, acl.principal) for acl in result.matching_acls)
            for result in response.filter_results
        ]

    def list_stored(self) -> set[tuple[int, int, str, str]]:
        """List the stored rules: types, physical name and physical principal."""
        return {(*pattern, rule.principal) for pattern, rules in self.holder.image.acls.items() for rule in rules}


@pytest.fixture
def node() -> AclTenants:
    """Two instances with the same rules, beside rules of the operator that concern all and one of them."""
    node = AclTenants()
    for instance in (SHOP, BANK):
        rules = (rule(), rule("*"), rule("ord", resource_pattern_type=PREFIXED, principal="User:*"))
        assert node.create(instance, *rules) == [0, 0, 0]
    operators = (
        rule("*"),
        rule("sh", resource_pattern_type=PREFIXED),
        rule("orders", principal="User:*"),
        rule("shop.orders", principal="User:auditor"),
        rule("kafka-cluster", resource_type=CLUSTER, principal="User:*", operation=12),
    )
    assert node.create(OPERATOR, *operators) == [0] * 5
    return node


OWN = [
    (TOPIC, "*", LITERAL, "User:alice", 3),
    (TOPIC, "ord", PREFIXED, "User:*", 3),
    (TOPIC, "orders", LITERAL, "User:alice", 3),
]


def test_rules_are_stored_under_physical_names(node: AclTenants) -> None:
    assert {stored for stored in node.list_stored() if "shop" in stored[2]} == {
        (TOPIC, LITERAL, "shop.orders", "User:shop.alice"),
        (TOPIC, PREFIXED, "shop.", "User:shop.alice"),
        (TOPIC, PREFIXED, "shop.ord", "User:*"),
        (TOPIC, LITERAL, "shop.orders", "User:auditor"),
    }


@pytest.mark.parametrize("instance", [SHOP, BANK])
def test_an_instance_sees_its_own_rules_only(node: AclTenants, instance: str) -> None:
    assert node.describe(instance) == OWN


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"pattern_type_filter": LITERAL}, [OWN[0], OWN[2]]),
        ({"pattern_type_filter": PREFIXED}, [OWN[1]]),
        ({"pattern_type_filter": MATCH}, OWN),
        ({"resource_name_filter": "orders"}, [OWN[2]]),
        ({"resource_name_filter": "orders", "pattern_type_filter": MATCH}, OWN),
        ({"resource_name_filter": "other", "pattern_type_filter": MATCH}, [OWN[0]]),
        ({"resource_name_filter": "*", "pattern_type_filter": LITERAL}, [OWN[0]]),
        ({"resource_name_filter": "*"}, [OWN[0]]),
        ({"resource_name_filter": "ord", "pattern_type_filter": PREFIXED}, [OWN[1]]),
        ({"principal_filter": "User:*"}, [OWN[1]]),
        ({"principal_filter": "User:alice"}, [OWN[0], OWN[2]]),
        ({"principal_filter": "User:auditor"}, []),
        ({"principal_filter": "User:shop.alice"}, []),
        ({"resource_name_filter": "shop.orders"}, []),
        ({"resource_name_filter": ""}, []),
        ({"resource_name_filter": "sh", "pattern_type_filter": PREFIXED}, []),
        ({"resource_type_filter": CLUSTER}, []),
        ({"resource_type_filter": TOPIC, "resource_name_filter": "orders", "pattern_type_filter": LITERAL}, [OWN[2]]),
    ],
)
def test_filters_select_among_the_own_rules(node: AclTenants, fields: dict[str, Any], rules: list[Any]) -> None:
    """A deletion selects the same rules, and removes no others."""
    assert node.describe(SHOP, **fields) == rules
    stored = node.list_stored()
    (deleted,) = node.delete(SHOP, fields)
    assert deleted == sorted((name, pattern, principal) for _, name, pattern, principal, _ in rules)
    assert node.describe(SHOP) == sorted(set(OWN) - set(rules))
    gone = stored - node.list_stored()
    assert len(gone) == len(rules)
    assert all(name.startswith("shop.") and principal in ("User:*", "User:shop.alice") for *_, name, principal in gone)


def test_each_filter_has_one_result(node: AclTenants) -> None:
    deleted = node.delete(SHOP, {"resource_name_filter": "none"}, {}, {"principal_filter": "User:*"})
    everything = sorted((name, pattern, principal) for _, name, pattern, principal, _ in OWN)
    assert deleted == [[], everything, [("ord", PREFIXED, "User:*")]]
    assert node.describe(BANK) == OWN


def test_a_filter_that_is_not_valid_deletes_nothing(node: AclTenants) -> None:
    filters = [DeleteAclsFilter(**{**anything(), **fields}) for fields in ({"operation": 99}, {})]
    response = node.ask_as(SHOP, DeleteAclsRequest(filters=filters), DeleteAclsResponse, 3)
    assert [result.error_code for result in response.filter_results] == [ErrorCode.INVALID_REQUEST, 0]
    assert [len(result.matching_acls) for result in response.filter_results] == [0, 3]


def test_wide_filters_have_a_bound(node: AclTenants) -> None:
    filters = [DeleteAclsFilter(**anything())] * 11
    response = node.ask_as(SHOP, DeleteAclsRequest(filters=filters), DeleteAclsResponse, 3)
    assert {result.error_code for result in response.filter_results} == {ErrorCode.POLICY_VIOLATION}
    assert node.describe(SHOP) == OWN
    named = {"resource_type_filter": TOPIC, "resource_name_filter": "orders", "pattern_type_filter": LITERAL}
    assert [len(group) for group in node.delete(SHOP, *[named] * 20)] == [1] * 20


@pytest.mark.parametrize(
    "creation",
    [
        rule(""),
        rule("", resource_pattern_type=PREFIXED),
        rule("shop.kafka-cluster", resource_type=CLUSTER),
        rule("x", resource_type=CLUSTER),
        rule("*", resource_type=CLUSTER),
        rule(principal="alice"),
        rule(principal="User:"),
        rule(principal=""),
        rule(operation=99),
        rule(resource_type=99),
        rule(resource_pattern_type=MATCH),
    ],
)
def test_rules_that_are_not_valid(node: AclTenants, creation: AclCreation) -> None:
    stored = node.list_stored()
    assert node.create(SHOP, creation) == [ErrorCode.INVALID_REQUEST]
    assert node.list_stored() == stored


def test_every_type_of_resource_has_names_of_its_own(node: AclTenants) -> None:
    assert node.delete(SHOP, {}) and node.describe(SHOP) == []
    rules = [rule("a", resource_type=kind) for kind in (GROUP, TRANSACTIONAL_ID, TOKEN)]
    rules += [rule("kafka-cluster", resource_type=CLUSTER), rule("User:bob", resource_type=USER, operation=13)]
    everything = [rule("*", resource_type=kind) for kind in (GROUP, TRANSACTIONAL_ID, TOKEN)]
    everything.append(rule("*", resource_type=USER, operation=13))
    assert set(node.create(SHOP, *rules, *everything)) == {0}
    created = (*rules, *everything)
    expected = [(acl.resource_type, acl.resource_name, LITERAL, "User:alice", 3) for acl in created]
    assert node.describe(SHOP) == sorted(expected)
    stored = {(kind, name) for kind, _, name, principal in node.list_stored() if principal == "User:shop.alice"}
    assert stored == {
        *((kind, name) for kind in (GROUP, TRANSACTIONAL_ID, TOKEN) for name in ("shop.a", "shop.")),
        (CLUSTER, "shop.kafka-cluster"),
        (USER, "User:shop.bob"),
        (USER, "User:shop."),
    }


def test_rules_of_adopted_resources() -> None:
    node = AclTenants()
    node.configure(SHOP, **{"topic.names": "old:legacy", "group.names": "g:legacy-g", "user.names": "carol:carol"})
    rules = (rule("old", principal="User:carol"), rule("g", resource_type=GROUP), rule("old", resource_pattern_type=4))
    assert node.create(SHOP, *rules) == [0, 0, 0]
    assert node.list_stored() == {
        (TOPIC, LITERAL, "legacy", "User:carol"),
        (GROUP, LITERAL, "legacy-g", "User:shop.alice"),
        (TOPIC, PREFIXED, "shop.old", "User:shop.alice"),
    }
    assert node.describe(SHOP) == [
        (TOPIC, "old", LITERAL, "User:carol", 3),
        (TOPIC, "old", PREFIXED, "User:alice", 3),
        (GROUP, "g", LITERAL, "User:alice", 3),
    ]


# Rights on the cluster


def test_users_without_rights_are_refused(node: AclTenants) -> None:
    assert node.create(SHOP, rule(), user="alice") == [REFUSED]
    response = node.ask_as(SHOP, DescribeAclsRequest(**anything()), DescribeAclsResponse, 3, "alice")
    assert (response.error_code, response.resources) == (REFUSED, [])
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**anything())] * 2)
    results = node.ask_as(SHOP, request, DeleteAclsResponse, 3, "alice").filter_results
    assert [(result.error_code, result.matching_acls) for result in results] == [(REFUSED, [])] * 2
    assert node.describe(SHOP) == OWN


def test_a_right_on_the_cluster_is_one_on_the_instance(node: AclTenants) -> None:
    grant = rule("kafka-cluster", resource_type=CLUSTER, operation=7)
    assert node.create(SHOP, grant) == [0]
    assert node.create(SHOP, rule("new"), user="alice") == [0]
    assert len(node.describe(SHOP, user="alice")) == 5
    assert node.create(BANK, rule("new"), user="alice") == [REFUSED]
    assert node.create(OPERATOR, rule("new"), user="alice") == [REFUSED]


def test_the_operators_rules_for_the_whole_cluster_give_an_instance_nothing(node: AclTenants) -> None:
    assert node.create(OPERATOR, rule("kafka-cluster", resource_type=CLUSTER, principal="User:*", operation=2)) == [0]
    assert node.create(SHOP, rule("new"), user="alice") == [REFUSED]


def test_the_operator_may_give_rights_on_the_cluster_of_an_instance(node: AclTenants) -> None:
    grant = rule("shop.kafka-cluster", resource_type=CLUSTER, principal="User:shop.alice", operation=7)
    assert node.create(OPERATOR, grant) == [0]
    assert node.create(SHOP, rule("new"), user="alice") == [0]
    nobody = rule("shopping.kafka-cluster", resource_type=CLUSTER)
    assert node.create(OPERATOR, nobody) == [ErrorCode.INVALID_REQUEST]


def test_the_first_version_has_rules_for_everything(node: AclTenants) -> None:
    """It has no field for the type of a pattern, which is lost where a request is forwarded to the controller."""
    request = CreateAclsRequest(creations=[rule("*", principal="User:bob")])
    assert node.ask_as(SHOP, request, CreateAclsResponse, 0).results[0].error_code == 0
    assert (TOPIC, PREFIXED, "shop.", "User:shop.bob") in node.list_stored()
    forwarded = CreateAclsRequest(creations=[rule("shop.", resource_type=GROUP, principal="User:shop.bob")])
    assert node.ask_as(OPERATOR, forwarded, CreateAclsResponse, 0).results[0].error_code == 0
    assert (GROUP, PREFIXED, "shop.", "User:shop.bob") in node.list_stored()
    wanted = DeleteAclsFilter(**{**anything(), "resource_name_filter": "shop.", "pattern_type_filter": LITERAL})
    response = node.ask_as(OPERATOR, DeleteAclsRequest(filters=[wanted]), DeleteAclsResponse, 0)
    assert len(response.filter_results[0].matching_acls) == 3
    assert node.describe(SHOP) == OWN[1:]


def test_without_an_authorizer_there_are_no_rules() -> None:
    node = TenantNode()
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**anything())] * 2)
    results = node.ask_as(SHOP, request, DeleteAclsResponse, 3).filter_results
    assert [result.error_code for result in results] == [ErrorCode.SECURITY_DISABLED] * 2
