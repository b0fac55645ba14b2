"""``ssl.principal.mapping.rules``: how the distinguished names of certificates become names of users (KIP-371)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.config.properties import ConfigError

if TYPE_CHECKING:
    import re2

_PART = r"((?:\\.|[^\\/])*)"
_RULE = re.compile(rf"\s*(?:(DEFAULT)|RULE:{_PART}/{_PART}/([LU]?))\s*(?:,\s*|$)", re.DOTALL)
_REFERENCE = re.compile(r"\\(.)|\$(\d)", re.DOTALL)
_OPTION = "ssl.principal.mapping.rules"


class NoMatchingRuleError(Exception):
    """No rule applies to a name; the message is one sentence."""


class MappingRule(NamedTuple):
    """One rule: names that match ``pattern`` as a whole become ``replacement``; ``case`` is L, U or empty."""

    pattern: re2._Regexp
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        """Return the user's name; None if the pattern does not match."""
        if self.pattern.fullmatch(name) is None:
            return None
        result: str = self.pattern.sub(self._expand, name)
        return {"L": result.lower(), "U": result.upper()}.get(self.case, result)

    def _expand(self, match: re2._Match[str]) -> str:
        """Replace $1 by what a group matched, as Java does; a number without a group stays as it is."""
        groups = self.pattern.groups

        def expand(reference: re.Match[str]) -> str:
            if reference[1] is not None:
                return reference[1]
            number = int(reference[2])
            return reference[0] if number > groups else match.group(number) or ""

        return _REFERENCE.sub(expand, self.replacement)


class MappingRules:
    """The rules of one listener, tried in order; an entry None is DEFAULT, the name itself."""

    def __init__(self, rules: Sequence[MappingRule | None]) -> None:
        self._rules = rules

    def map_name(self, distinguished_name: str) -> str:
        """Return the user's name of a certificate; raises NoMatchingRuleError."""
        for rule in self._rules:
            name = distinguished_name if rule is None else rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRuleError(f"no rule of {_OPTION} applies to {distinguished_name!r}")


def parse_mapping_rules(text: str) -> MappingRules:
    """Parse rules that are separated by commas: DEFAULT, RULE:pattern/replacement/, and a final L or U for the case.

    Raises ConfigError. Patterns are RE2's, so those with look-around or back references are refused.
    """
    rules: list[MappingRule | None] = []
    position = 0
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None:
            words = "it takes DEFAULT and RULE:pattern/replacement/ with L, U or nothing at the end"
            raise ConfigError(f"{_OPTION}={text[:200]} is not valid at {text[position : position + 50]!r}: {words}")
        rules.append(None if match[1] else _build_rule(match[2], match[3], match[4]))
        position = match.end()
    return MappingRules(rules or [None])


def _build_rule(pattern: str, replacement: str, case: str) -> MappingRule:
    import re2  # Most listeners have no rule.

    options = re2.Options()
    options.log_errors = False
    try:
        return MappingRule(re2.compile(pattern, options), replacement, case)
    except re2.error as problem:
        reason = problem.args[0].decode(errors="replace") if problem.args else "unknown"
        raise ConfigError(f"{_OPTION}: the pattern {pattern!r} is not valid: {reason}") from None
