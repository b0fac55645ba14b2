"""All rules at one moment, so that those of a resource are found without looking at the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kafkacompat.security.acls.model import WILDCARD, AccessRule, Acl, AclPattern, AclResourceType, PatternType

FEW = 8
"""Rules of a pattern that are looked through rather than grouped by principal."""


class RuleSet:
    """The rules of one pattern; immutable. Those of one principal are found without looking at many others."""

    __slots__ = ("_by_principal", "rules")

    def __init__(self, rules: Iterable[AccessRule]) -> None:
        self.rules = frozenset(rules)
        self._by_principal: dict[str, list[AccessRule]] | None = None

    def find(self, principal: str) -> Collection[AccessRule]:
        """Return the rules that name a principal."""
        if len(self.rules) <= FEW:
            return [rule for rule in self.rules if rule.principal == principal]
        if self._by_principal is None:
            self._by_principal = {}
            for rule in self.rules:
                self._by_principal.setdefault(rule.principal, []).append(rule)
        return self._by_principal.get(principal, ())

    def __iter__(self) -> Iterator[AccessRule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSet) and self.rules == other.rules

    def __hash__(self) -> int:
        return hash(self.rules)

    def __repr__(self) -> str:
        return f"RuleSet({sorted(self.rules)})"


class AclTable:
    """The rules by pattern; immutable. A pattern has at least one rule."""

    __slots__ = ("_lengths", "_rules")

    def __init__(self, rules: Mapping[AclPattern, RuleSet] | None = None) -> None:
        self._rules = {pattern: these for pattern, these in (rules or {}).items() if these}
        self._lengths: dict[AclResourceType, dict[int, int]] = {kind: {} for kind in AclResourceType}
        for pattern in self._rules:
            self._count(pattern, 1)

    def _count(self, pattern: AclPattern, change: int) -> None:
        """Count the prefixes of each length: only these lengths of a name are looked up."""
        if pattern.pattern_type is PatternType.PREFIXED:
            lengths = self._lengths[pattern.resource_type]
            count = lengths.get(len(pattern.name), 0) + change
            if count:
                lengths[len(pattern.name)] = count
            else:
                del lengths[len(pattern.name)]

    def replace(self, changes: Mapping[AclPattern, RuleSet]) -> AclTable:
        """Return a table with other rules for some patterns; one without rules is removed."""
        changed = AclTable()
        changed._rules = rules = dict(self._rules)
        changed._lengths = {kind: dict(lengths) for kind, lengths in self._lengths.items()}
        for pattern, after in changes.items():
            if pattern in rules:
                del rules[pattern]
                changed._count(pattern, -1)
            if after:
                rules[pattern] = after
                changed._count(pattern, 1)
        return changed

    def rules_of(self, pattern: AclPattern) -> RuleSet:
        """Return the rules of exactly this pattern."""
        return self._rules.get(pattern, NO_RULES)

    def covering(self, kind: AclResourceType, name: str) -> Iterator[tuple[AclPattern, RuleSet]]:
        """Yield the patterns that select a resource, with their rules."""
        literals = (AclPattern(kind, PatternType.LITERAL, text) for text in dict.fromkeys((name, WILDCARD)))
        prefixes = (
            AclPattern(kind, PatternType.PREFIXED, name[:length])
            for length in self._lengths[kind]
            if length <= len(name)
        )
        for patterns in (literals, prefixes):
            for pattern in patterns:
                if rules := self._rules.get(pattern):
                    yield pattern, rules

    def __iter__(self) -> Iterator[AclPattern]:
        return iter(self._rules)

    def items(self) -> Iterable[tuple[AclPattern, RuleSet]]:
        """Return all patterns with their rules."""
        return self._rules.items()

    def __contains__(self, pattern: object) -> bool:
        return pattern in self._rules

    def __len__(self) -> int:
        """Return the number of patterns."""
        return len(self._rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AclTable) and self._rules == other._rules

    __hash__ = None  # type: ignore[assignment]  # two tables are compared, never looked up


def group_acls(acls: Iterable[Acl]) -> dict[AclPattern, RuleSet]:
    """Return rules by their patterns."""
    grouped: dict[AclPattern, set[AccessRule]] = {}
    for pattern, rule in acls:
        grouped.setdefault(pattern, set()).add(rule)
    return {pattern: RuleSet(rules) for pattern, rules in grouped.items()}


NO_RULES = RuleSet(())
NO_ACLS = AclTable()
