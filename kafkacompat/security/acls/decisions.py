"""The decision about one request for one resource, by Kafka's rules (StandardAuthorizer).

A rule that denies wins over all that allow. READ, WRITE, DELETE and ALTER allow DESCRIBE too, and ALTER_CONFIGS allows
DESCRIBE_CONFIGS. Without any rule for the resource the default decides.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from kafkacompat.security.acls.model import (
    ALL_USERS,
    WILDCARD,
    AccessRule,
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResourceType,
    PatternType,
)
from kafkacompat.security.acls.table import AclTable


class AccessDecision(NamedTuple):
    """Whether an operation is allowed, and why: by a rule, or in Kafka's words, such as SuperUser."""

    allowed: bool
    reason: Acl | str

    def describe(self) -> str:
        """Return the reason as Kafka's log lines have it."""
        if isinstance(self.reason, str):
            return self.reason
        (kind, pattern_type, name), rule = self.reason
        return (
            f"MatchingAcl(acl=StandardAcl(resourceType={kind.name}, resourceName={name}, patternType={pattern_type.name},"
            f" principal={rule.principal}, host={rule.host}, operation={rule.operation.name},"
            f" permissionType={rule.permission.name}))"
        )


SUPER_USER = AccessDecision(True, "SuperUser")
ALLOWED_BY_DEFAULT = AccessDecision(True, "DefaultAllow")
DENIED_BY_DEFAULT = AccessDecision(False, "DefaultDeny")

ALLOWING: dict[AclOperation, frozenset[AclOperation]] = {
    operation: frozenset({operation, AclOperation.ALL}) for operation in AclOperation
} | {
    AclOperation.DESCRIBE: frozenset(
        {
            AclOperation.DESCRIBE,
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.ALL,
        }
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset(
        {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS, AclOperation.ALL}
    ),
}
"""By operation: the operations whose rules allow it, too."""


class Client(NamedTuple):
    """Who acts, and every way to write the address that the client has."""

    principal: str
    hosts: frozenset[str]

    def is_named_by(self, rule: AccessRule) -> bool:
        """Return whether a rule applies to this client's address."""
        return rule.host in self.hosts


def make_client(principal: str, host: str) -> Client:
    """Return the client at an address. Rules name an IPv6 address in the usual form, or as Java writes it: in full."""
    hosts = {WILDCARD, host}
    with suppress(ValueError):
        address = ip_address(host.partition("%")[0])
        if isinstance(address, IPv6Address):
            hosts |= {str(address), ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))}
            if address.ipv4_mapped is not None:
                hosts.add(str(address.ipv4_mapped))
    return Client(principal, frozenset(hosts))


def decide(
    table: AclTable, client: Client, operation: AclOperation, kind: AclResourceType, name: str, default: AccessDecision
) -> AccessDecision:
    """Decide by the rules of a table; *default* decides about resources without any rule."""
    allowing: Acl | None = None
    has_rules = False
    for pattern, rules in table.covering(kind, name):
        has_rules = True
        for principal in (client.principal, ALL_USERS):
            for rule in rules.find(principal):
                if not client.is_named_by(rule):
                    continue
                if rule.permission is AclPermission.DENY:
                    if rule.operation in (operation, AclOperation.ALL):
                        return AccessDecision(False, Acl(pattern, rule))
                elif allowing is None and rule.operation in ALLOWING[operation]:
                    allowing = Acl(pattern, rule)
    if allowing is not None:
        return AccessDecision(True, allowing)
    return DENIED_BY_DEFAULT if has_rules else default


def combine(first: AccessDecision, second: AccessDecision) -> AccessDecision:
    """Return the decision about a resource with two names: a rule that denies wins, then one that allows, then the default."""
    by_rule = [decision for decision in (first, second) if isinstance(decision.reason, Acl)]
    denials = [decision for decision in by_rule if not decision.allowed]
    if by_rule:
        return (denials or by_rule)[0]
    return second if first.allowed else first


def is_allowed_on_any(
    table: AclTable, client: Client, operation: AclOperation, kind: AclResourceType, prefix: str = ""
) -> bool:
    """Return whether there may be a resource of a type for which an operation is allowed (Kafka's authorizeByResourceType).

    That is so if a rule allows it which no rule that denies outweighs as a whole. With a *prefix* only resources whose names begin
    with it count.
    """
    allowed: dict[PatternType, set[str]] = {pattern_type: set() for pattern_type in PatternType}
    denied: dict[PatternType, set[str]] = {pattern_type: set() for pattern_type in PatternType}
    for pattern, rules in table.items():
        if pattern.resource_type is kind and (not prefix or _concerns(pattern, prefix)):
            permissions = {
                rule.permission
                for principal in (client.principal, ALL_USERS)
                for rule in rules.find(principal)
                if client.is_named_by(rule) and rule.operation in (operation, AclOperation.ALL)
            }
            if AclPermission.DENY in permissions:
                denied[pattern.pattern_type].add(pattern.name)
            if AclPermission.ALLOW in permissions:
                allowed[pattern.pattern_type].add(pattern.name)
    if WILDCARD in denied[PatternType.LITERAL]:
        return False
    if WILDCARD in allowed[PatternType.LITERAL]:
        return True
    literals = allowed[PatternType.LITERAL] - denied[PatternType.LITERAL]
    prefixes = denied[PatternType.PREFIXED]
    return any(not _begins_with_any(name, prefixes) for name in literals | allowed[PatternType.PREFIXED])


def _concerns(pattern: AclPattern, prefix: str) -> bool:
    """Return whether a pattern selects names that begin with *prefix*."""
    if pattern.name.startswith(prefix):
        return True
    return pattern.name == WILDCARD or (
        pattern.pattern_type is PatternType.PREFIXED and prefix.startswith(pattern.name)
    )


def _begins_with_any(name: str, prefixes: Collection[str]) -> bool:
    return bool(prefixes) and any(name[:length] in prefixes for length in range(1, len(name) + 1))
