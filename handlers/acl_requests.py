"""What the three APIs of access rules (ACLs) share: rules and filters from requests, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kafkacompat.security.acls.filters import AclFilter
from kafkacompat.security.acls.model import (
    CLUSTER_NAME,
    AccessRule,
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResourceType,
    PatternType,
)
from kafkacompat.security.principals import parse_principal
from kafkacompat.wire.apis.create_acls import AclCreation
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.tenancy.registry import Instances

NO_AUTHORIZER = "this broker has no authorizer and keeps no ACLs"


class AclFilterFields(Protocol):
    """The fields of a filter in either request."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def parse_deletion(fields: AclFilterFields, instances: Instances) -> AclFilter:
    """Parse a filter of rules to delete, whose names are physical."""
    wanted = parse_filter(fields)
    if wanted.pattern_type == PatternType.LITERAL and wanted.name is not None:
        return wanted._replace(pattern_type=_find_pattern_type(PatternType.LITERAL, wanted.name, instances))
    return wanted


def parse_filter(fields: AclFilterFields) -> AclFilter:
    """Parse a filter; an unknown code is found by `AclFilter.check`."""
    return AclFilter(
        fields.resource_type_filter,
        fields.resource_name_filter,
        fields.pattern_type_filter,
        fields.principal_filter,
        fields.host_filter,
        fields.operation,
        fields.permission_type,
    )


def parse_creation(creation: AclCreation, instances: Instances) -> Acl:
    """Parse a rule to add, for the whole cluster or one of the *instances*; raises KafkaError INVALID_REQUEST."""
    try:
        acl = Acl(
            AclPattern(
                AclResourceType(creation.resource_type),
                _find_pattern_type(PatternType(creation.resource_pattern_type), creation.resource_name, instances),
                creation.resource_name,
            ),
            AccessRule(
                creation.principal,
                creation.host,
                AclOperation(creation.operation),
                AclPermission(creation.permission_type),
            ),
        )
        parse_principal(creation.principal)
    except ValueError as problem:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"no rule may have this: {problem}") from None
    _check_name(acl.pattern, instances)
    if not creation.host:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the host of a rule is empty: * stands for all")
    return acl


def _find_pattern_type(pattern_type: PatternType, name: str, instances: Instances) -> PatternType:
    """Return the type of a pattern. Only a prefixed one has an instance's prefix as its name.

    Version 0 has no field for the type, so the controller would take a forwarded pattern for a literal one.
    """
    return PatternType.PREFIXED if instances.is_prefix(name) else pattern_type


def _check_name(pattern: AclPattern, instances: Instances) -> None:
    if pattern.resource_type is AclResourceType.CLUSTER and not instances.is_cluster_name(pattern.name):
        reason = f"the only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    if not pattern.name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the resource name is empty: * stands for all")
