"""Access rules (ACLs): listed, added and removed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from kafkacompat.cli.remote.administration.acl_options import AclResource, Grantee, ResourceAccess
from kafkacompat.cli.remote.errors import EXIT_DONE, EXIT_REFUSED, RemoteError, explain_refusal
from kafkacompat.security.acls.model import ANY, AclOperation, AclPermission, AclResourceType, PatternType
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from kafkacompat.wire.apis.describe_acls import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output

Member = TypeVar("Member", bound=IntEnum)
LITERAL = int(PatternType.LITERAL)


def list_rules(
    cluster: RemoteCluster,
    output: Output,
    resources: Sequence[AclResource],
    pattern_type: int,
    principals: Sequence[str],
) -> None:
    """Write the rules about resources and principals, all where none is named; raises RemoteError."""
    wanted: Sequence[AclResource | None] = resources or [None]
    filters: Sequence[str | None] = principals or [None]
    rows: list[dict[str, object]] = []
    for resource in wanted:
        for principal in filters:
            rows += _read_rules(cluster, resource, pattern_type, principal)
    unique = {tuple(row.values()): row for row in rows}
    output.write_rows(sorted(unique.values(), key=lambda row: tuple(map(str, row.values()))), "There are no such rules")


def _read_rules(
    cluster: RemoteCluster, resource: AclResource | None, pattern_type: int, principal: str | None
) -> list[dict[str, object]]:
    request = DescribeAclsRequest(
        resource_type_filter=resource.resource_type if resource else ANY,
        resource_name_filter=resource.name if resource else None,
        pattern_type_filter=pattern_type,
        principal_filter=principal,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    response = cluster.request(request, DescribeAclsResponse)
    if response.error_code:
        reason = explain_refusal(response.error_code, response.error_message)
        raise RemoteError(f"the rules are not listed: {reason}")
    return [
        _describe_rule(
            described.resource_type,
            described.resource_name,
            described.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for described in response.resources
        for acl in described.acls
    ]


def _describe_rule(
    resource_type: int, name: str, pattern_type: int, principal: str, host: str, operation: int, permission: int
) -> dict[str, object]:
    return {
        "principal": principal,
        "permission": _name_code(AclPermission, permission),
        "operation": _name_code(AclOperation, operation),
        "resource_type": _name_code(AclResourceType, resource_type),
        "resource": name,
        "pattern_type": _name_code(PatternType, pattern_type),
        "host": host,
    }


def _name_code(names: type[Member], code: int) -> str:
    return names(code).name if code in {member.value for member in names} else f"UNKNOWN({code})"


def add_rules(
    cluster: RemoteCluster,
    output: Output,
    accesses: Sequence[ResourceAccess],
    pattern_type: int,
    grantees: Sequence[Grantee],
) -> int:
    """Add a rule for each access and grantee; returns the exit code."""
    creations = [
        AclCreation(
            resource_type=resource.resource_type,
            resource_name=resource.name,
            resource_pattern_type=_choose_pattern_type(resource, pattern_type),
            principal=grantee.principal,
            host=grantee.host,
            operation=operation,
            permission_type=grantee.permission,
        )
        for resource, operation in accesses
        for grantee in grantees
    ]
    response = cluster.request_controller(CreateAclsRequest(creations=creations), CreateAclsResponse)
    rows, problems = [], []
    for creation, result in zip(creations, response.results, strict=True):
        if result.error_code:
            problems.append(explain_refusal(result.error_code, result.error_message))
        else:
            rows.append(
                _describe_rule(
                    creation.resource_type,
                    creation.resource_name,
                    creation.resource_pattern_type,
                    creation.principal,
                    creation.host,
                    creation.operation,
                    creation.permission_type,
                )
            )
    return _write_changes(output, "added", rows, problems)


def _choose_pattern_type(resource: AclResource, pattern_type: int) -> int:
    """Return the pattern type for the name of a resource; the cluster has one name, without patterns."""
    return LITERAL if resource.resource_type == AclResourceType.CLUSTER else pattern_type


def remove_rules(
    cluster: RemoteCluster,
    output: Output,
    accesses: Sequence[ResourceAccess],
    pattern_type: int,
    grantees: Sequence[Grantee],
) -> int:
    """Remove the rules about accesses and grantees, without grantees those of all principals; returns the exit code."""
    rules: list[tuple[str | None, str | None, int]] = [*grantees] or [(None, None, ANY)]
    filters = [
        DeleteAclsFilter(
            resource_type_filter=resource.resource_type,
            resource_name_filter=resource.name,
            pattern_type_filter=_choose_pattern_type(resource, pattern_type),
            principal_filter=principal,
            host_filter=host,
            operation=operation,
            permission_type=permission,
        )
        for resource, operation in accesses
        for principal, host, permission in rules
    ]
    request = DeleteAclsRequest(filters=filters)
    rows, problems = [], []
    for result in cluster.request_controller(request, DeleteAclsResponse).filter_results:
        if result.error_code:
            problems.append(explain_refusal(result.error_code, result.error_message))
        for acl in result.matching_acls:
            if acl.error_code:
                problems.append(explain_refusal(acl.error_code, acl.error_message))
                continue
            rows.append(
                _describe_rule(
                    acl.resource_type,
                    acl.resource_name,
                    acl.pattern_type,
                    acl.principal,
                    acl.host,
                    acl.operation,
                    acl.permission_type,
                )
            )
    return _write_changes(output, "removed", rows, problems)


def _write_changes(output: Output, verb: str, rows: Sequence[dict[str, object]], problems: Sequence[str]) -> int:
    """Write the rules that are added or removed, and each problem once; returns the exit code."""
    if rows or not problems or output.as_json:
        output.write_rows(rows, f"No rule is {verb}")
    if rows and not output.as_json:
        output.report(f"{verb.capitalize()} {len(rows)} {'rule' if len(rows) == 1 else 'rules'}")
    code = EXIT_DONE
    for problem in dict.fromkeys(problems):
        output.complain(f"a rule is not {verb}: {problem}")
        code = EXIT_REFUSED
    return code
