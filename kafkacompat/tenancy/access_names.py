"""The names in access rules (ACLs): those that an instance's clients use, and the physical ones of the stored rules.

A rule for all resources of a type, ``*``, is stored as one for all names with the instance's prefix. Rules for names with some
beginning are stored with the prefix, too; `kafkacompat.tenancy.rights` lets them select adopted resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kafkacompat.security.acls.model import WILDCARD, Acl, AclPattern, AclResourceType, PatternType
from kafkacompat.security.principals import USER_PREFIX
from kafkacompat.tenancy.names import FOREIGN
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.security.acls.filters import AclFilter
    from kafkacompat.security.acls.table import AclTable
    from kafkacompat.tenancy.names import Names

_ADOPTED: Mapping[int, str] = {
    AclResourceType.GROUP: entities.GROUP,
    AclResourceType.TRANSACTIONAL_ID: entities.TRANSACTIONAL_ID,
    AclResourceType.USER: entities.USER,
}
"""The resources besides topics that may have an adopted name."""

Pattern = tuple[int, str]
"""A pattern type of the wire and a name."""


class AclNames:
    """Translates the names in access rules of one instance. Types are numbers of the wire, and may be invalid."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def _split(self, kind: int, name: str) -> tuple[str, str]:
        """Return the part of a name before the prefix, and the part after it."""
        is_user = kind == AclResourceType.USER and name.startswith(USER_PREFIX)
        return (USER_PREFIX, name.removeprefix(USER_PREFIX)) if is_user else ("", name)

    def to_physical(self, kind: int, pattern_type: int, name: str) -> Pattern:
        """Return the physical pattern; a name that is empty stays, and is no name that a rule may have."""
        prefix = self._names.prefix
        if not name:
            return pattern_type, name
        if pattern_type == PatternType.LITERAL and name == WILDCARD:
            return PatternType.PREFIXED, f"{USER_PREFIX if kind == AclResourceType.USER else ''}{prefix}"
        front, rest = self._split(kind, name)
        if pattern_type == PatternType.LITERAL:
            return pattern_type, front + self._find_literal(kind, rest)
        return pattern_type, f"{front}{prefix}{rest}"

    def _find_literal(self, kind: int, name: str) -> str:
        names = self._names
        if kind == AclResourceType.TOPIC:
            physical: str = names.to_physical[entities.TOPIC][name]
            return physical if names.is_own(entities.TOPIC, physical) else f"{names.prefix}{name}"
        table = names.tables.get(_ADOPTED.get(kind, ""), {})
        return str(table[name]) if name in table else f"{names.prefix}{name}"

    def to_client(self, kind: int, pattern_type: int, physical: str) -> Pattern | None:
        """Return the pattern that clients know; None for a pattern that is not the instance's."""
        prefix = self._names.prefix
        front, rest = self._split(kind, physical)
        if rest == prefix:
            return PatternType.LITERAL, WILDCARD
        if pattern_type != PatternType.LITERAL:
            return (pattern_type, front + rest[len(prefix) :]) if rest.startswith(prefix) else None
        entity = entities.TOPIC if kind == AclResourceType.TOPIC else _ADOPTED.get(kind)
        if entity is not None and self._names.is_own(entity, rest):
            name: Any = self._names.to_client[entity][rest]
            return pattern_type, f"{front}{name}"
        return (pattern_type, front + rest[len(prefix) :]) if rest.startswith(prefix) else None

    def select(self, wanted: AclFilter, table: AclTable) -> Iterator[Acl | None]:
        """Yield the stored rules of the instance that a filter with the clients' names selects.

        Each pattern that is left out yields None, so that a caller may end its turn.
        """
        for pattern in table:
            client_pattern = self._find_client_pattern(pattern)
            if client_pattern is not None and wanted.selects_pattern(client_pattern):
                yield from self._select_rules(pattern, wanted, table)
            else:
                yield None

    def select_exact(self, wanted: AclFilter, table: AclTable) -> Iterator[Acl]:
        """Yield the same for a filter that names one pattern, without a look at the others."""
        pattern_type, physical = self.to_physical(wanted.resource_type, wanted.pattern_type, wanted.name or "")
        pattern = AclPattern(AclResourceType(wanted.resource_type), PatternType(pattern_type), physical)
        return self._select_rules(pattern, wanted, table)

    def _select_rules(self, pattern: AclPattern, wanted: AclFilter, table: AclTable) -> Iterator[Acl]:
        to_client = self._names.to_client[entities.PRINCIPAL]
        for rule in table.rules_of(pattern):
            principal = to_client[rule.principal]
            if principal is not FOREIGN and wanted.selects_rule(rule._replace(principal=principal)):
                yield Acl(pattern, rule)

    def _find_client_pattern(self, pattern: AclPattern) -> AclPattern | None:
        translated = self.to_client(*pattern)
        if translated is None:
            return None
        pattern_type, name = translated
        return AclPattern(pattern.resource_type, PatternType(pattern_type), name)
