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
from kafkacompat.security.acls.table import AclTable, group_acls


def parse_acl(line: str) -> Acl:
    """Parse ``+USER OPERATION TYPE NAME [from HOST]``: ``-`` denies, and a name that ends in ``...`` is a prefix."""
    signed_user, operation, kind, name, *place = line.split(" ")
    is_prefix = name.endswith("...")
    pattern = AclPattern(
        AclResourceType[kind],
        PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        name.removesuffix("...") if is_prefix else name,
    )
    permission = AclPermission.ALLOW if signed_user[0] == "+" else AclPermission.DENY
    return Acl(
        pattern, AccessRule(f"User:{signed_user[1:]}", place[1] if place else "*", AclOperation[operation], permission)
    )


def build_table(*lines: str) -> AclTable:
    """Return the table of these rules."""
    return AclTable(group_acls(map(parse_acl, lines)))
