"""What the options of `kafkacompat acls` mean, in the words of kafka-acls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import click

from kafkacompat.security.acls.model import (
    ANY,
    CLUSTER_NAME,
    MATCH,
    WILDCARD,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)

PATTERN_TYPES = {"any": ANY, "match": MATCH, "literal": int(PatternType.LITERAL), "prefixed": int(PatternType.PREFIXED)}
_READ, _WRITE, _DESCRIBE, _CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE
PRODUCER: Mapping[AclResourceType, Sequence[AclOperation]] = {
    AclResourceType.TOPIC: [_WRITE, _DESCRIBE, _CREATE],
    AclResourceType.TRANSACTIONAL_ID: [_WRITE, _DESCRIBE],
}
CONSUMER: Mapping[AclResourceType, Sequence[AclOperation]] = {
    AclResourceType.TOPIC: [_READ, _DESCRIBE],
    AclResourceType.GROUP: [_READ],
}


class AclResource(NamedTuple):
    """A resource that rules are about."""

    resource_type: AclResourceType
    name: str


class Grantee(NamedTuple):
    """A principal at a host, and whether a rule allows or denies."""

    principal: str
    host: str
    permission: AclPermission


class ResourceAccess(NamedTuple):
    """An operation on a resource; ANY in a filter stands for all operations."""

    resource: AclResource
    operation: int


def parse_operation(text: str) -> AclOperation:
    """Return the operation of a name such as Read or DescribeConfigs, in any case; raises click.UsageError."""
    wanted = text.replace("_", "").replace("-", "").lower()
    for operation in AclOperation:
        if operation.word.lower() == wanted:
            return operation
    raise click.UsageError(
        f"--operation {text} is not valid: it takes one of {', '.join(known.word for known in AclOperation)}"
    )


def list_resources(
    *,
    topics: Iterable[str],
    groups: Iterable[str],
    transactional_ids: Iterable[str],
    delegation_tokens: Iterable[str],
    user_principals: Iterable[str],
    is_for_cluster: bool,
) -> list[AclResource]:
    """Return the resources that options name."""
    named = {
        AclResourceType.TOPIC: topics,
        AclResourceType.GROUP: groups,
        AclResourceType.CLUSTER: [CLUSTER_NAME] if is_for_cluster else [],
        AclResourceType.TRANSACTIONAL_ID: transactional_ids,
        AclResourceType.DELEGATION_TOKEN: delegation_tokens,
        AclResourceType.USER: user_principals,
    }
    return [AclResource(kind, name) for kind, names in named.items() for name in names]


def list_grantees(
    allowed: Sequence[str], denied: Sequence[str], allow_hosts: Sequence[str], deny_hosts: Sequence[str]
) -> list[Grantee]:
    """Return principals with hosts, all where none is named; raises click.UsageError for a wrong principal or a host alone."""
    for principal in (*allowed, *denied):
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise click.UsageError(f"the principal {principal} is not of the form User:NAME")
    for principals, hosts, kind in ((allowed, allow_hosts, "allow"), (denied, deny_hosts, "deny")):
        if hosts and not principals:
            raise click.UsageError(f"--{kind}-host needs --{kind}-principal: the principal may be User:*")
    return [
        Grantee(principal, host, permission)
        for principals, hosts, permission in (
            (allowed, allow_hosts, AclPermission.ALLOW),
            (denied, deny_hosts, AclPermission.DENY),
        )
        for principal in principals
        for host in hosts or [WILDCARD]
    ]


def list_accesses(
    resources: Sequence[AclResource],
    operations: Sequence[str],
    *,
    is_producer: bool = False,
    is_consumer: bool = False,
    is_idempotent: bool = False,
    without_operation: int = AclOperation.ALL,
) -> list[ResourceAccess]:
    """Return what options name: operations, or those that --producer, --consumer and --idempotent stand for.

    Raises click.UsageError.
    """
    roles = [role for role, is_wanted in ((PRODUCER, is_producer), (CONSUMER, is_consumer)) if is_wanted]
    if roles and operations:
        raise click.UsageError("--operation excludes --producer and --consumer, which stand for operations")
    if roles:
        chosen = [
            ResourceAccess(resource, operation)
            for role in roles
            for resource in resources
            for operation in role.get(resource.resource_type, ())
        ]
    else:
        codes: list[int] = [*map(parse_operation, operations)] or [without_operation]
        chosen = [ResourceAccess(resource, code) for resource in resources for code in codes]
    if is_idempotent:
        chosen.append(ResourceAccess(AclResource(AclResourceType.CLUSTER, CLUSTER_NAME), AclOperation.IDEMPOTENT_WRITE))
    if not chosen:
        raise click.UsageError("name a resource: --topic, --group, --transactional-id, --cluster or another one")
    return list(dict.fromkeys(chosen))
