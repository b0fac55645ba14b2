"""Filters of DescribeAcls and DeleteAcls: the rules that an administrator names (Kafka's AclBindingFilter)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkacompat.security.acls.model import (
    ANY,
    MATCH,
    AccessRule,
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResourceType,
    PatternType,
)
from kafkacompat.security.acls.table import AclTable
from kafkacompat.wire.errors import ErrorCode, KafkaError


class AclFilter(NamedTuple):
    """What a rule must have to be found: codes of the wire, where ANY stands for all, and texts, where None does.

    With the pattern type MATCH the rules are found that apply to the resource ``name``.
    """

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def check(self) -> None:
        """Raise KafkaError INVALID_REQUEST for a code that nothing has."""
        codes = (
            ("resource type", self.resource_type, [ANY, *AclResourceType]),
            ("pattern type", self.pattern_type, [ANY, MATCH, *PatternType]),
            ("operation", self.operation, [ANY, *AclOperation]),
            ("permission type", self.permission, [ANY, *AclPermission]),
        )
        for name, code, known in codes:
            if code not in known:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"{code} is no {name} that a filter may have")

    def selects_pattern(self, pattern: AclPattern) -> bool:
        """Return whether rules of these resources are wanted."""
        if self.resource_type not in (ANY, pattern.resource_type):
            return False
        if self.name is None:
            return self.pattern_type in (ANY, MATCH, pattern.pattern_type)
        if self.pattern_type == MATCH:
            return pattern.covers(self.name)
        return pattern.name == self.name and self.pattern_type in (ANY, pattern.pattern_type)

    def selects_rule(self, rule: AccessRule) -> bool:
        """Return whether a rule of wanted resources is wanted."""
        return (
            self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (ANY, rule.operation)
            and self.permission in (ANY, rule.permission)
        )

    def find(self, table: AclTable) -> Iterator[Acl]:
        """Yield the rules of a table that the filter selects."""
        for pattern in self._list_patterns(table):
            if self.selects_pattern(pattern):
                for rule in table.rules_of(pattern):
                    if self.selects_rule(rule):
                        yield Acl(pattern, rule)

    def _list_patterns(self, table: AclTable) -> list[AclPattern]:
        """Return the patterns that may be selected: few, if the filter names a resource."""
        if self.name is None or self.resource_type == ANY:
            return list(table)
        kind = AclResourceType(self.resource_type)
        if self.pattern_type == MATCH:
            return [pattern for pattern, _ in table.covering(kind, self.name)]
        return [
            pattern for pattern_type in PatternType if (pattern := AclPattern(kind, pattern_type, self.name)) in table
        ]
