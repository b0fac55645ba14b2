"""Rules for tests, in the form of a line: ``+alice READ TOPIC orders``."""

from __future__ import annotations

from kafkacompat.security.acls.model import (
    AccessRule,
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResourceType,
    PatternType,
)
from kafkacompat.security.acls.table import AclTable, RuleSet


def parse_acl(line: str) -> Acl:
    """Parse ``+USER OPERATION TYPE NAME [from HOST]``: ``-`` denies, and a name that ends in ``...`` is a prefix."""
    who, operation, kind, name, *place = line.split(" ")
    is_prefix = name.endswith("...")
    pattern = AclPattern(
        AclResourceType[kind],
        PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        name.removesuffix("...") if is_prefix else name,
    )
    permission = AclPermission.ALLOW if who[0] == "+" else AclPermission.DENY
    return Acl(pattern, AccessRule(f"User:{who[1:]}", place[1] if place else "*", AclOperation[operation], permission))


def build_table(*lines: str) -> AclTable:
    """Return the table of these rules."""
    rules: dict[AclPattern, set[AccessRule]] = {}
    for pattern, rule in map(parse_acl, lines):
        rules.setdefault(pattern, set()).add(rule)
    return AclTable({pattern: RuleSet(these) for pattern, these in rules.items()})
