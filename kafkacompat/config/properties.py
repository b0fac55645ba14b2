"""A property: its row in a table, and the check of its values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from kafkacompat.config.values import WORDS, Rule, Value, parse_rule, parse_value


class ConfigError(ValueError):
    """A configuration cannot be used; the message is one sentence that says why."""


class Property(NamedTuple):
    """One row of a table of properties; `tables` explains the columns."""

    name: str
    kind: str
    default: str | None
    allowed: str
    flags: str
    text: str

    @property
    def used(self) -> bool:
        """Whether the property has an effect here."""
        return "U" in self.flags

    @property
    def internal(self) -> bool:
        """Whether DescribeConfigs returns the property only when it is set."""
        return "I" in self.flags

    @property
    def dynamic(self) -> bool:
        """Whether the property may change while the broker runs."""
        return "C" in self.flags or self.per_broker

    @property
    def per_broker(self) -> bool:
        """Whether the property may change only for one broker at a time."""
        return "B" in self.flags

    @property
    def sensitive(self) -> bool:
        """Whether the value is never shown."""
        return self.kind == "password"

    @property
    def default_value(self) -> Value:
        """The parsed default; None when there is none."""
        return None if self.default is None else parse_value(self.kind, self.default)

    def parse(self, text: str) -> Value:
        """Parse a value of this property.

        Raises ConfigError, which names the property, the value and the allowed values.
        """
        rule = _parse_cached_rule(self.kind, self.allowed)
        try:
            value = parse_value(self.kind, text)
        except ValueError:
            raise self.error(text, rule.words) from None
        if rule.unique and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))
        if not rule.allows(value):
            raise self.error(text, rule.words)
        return value

    def error(self, text: str, words: str = "") -> ConfigError:
        """Build the error for a value that is not allowed."""
        shown = "..." if self.sensitive else _shorten_value(text)
        return ConfigError(f"{self.name}={shown} is not valid: it takes {words or WORDS[self.kind]}")


@cache
def _parse_cached_rule(kind: str, allowed: str) -> Rule:
    return parse_rule(kind, allowed)


def _shorten_value(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


def parse_table(table: str) -> Iterator[Property]:
    """Parse the rows of a table of properties."""
    for line in table.strip("\n").replace("\n    ", " ").split("\n"):
        name, kind, default, allowed, flags, text = (column.strip() for column in line.split("|"))
        yield Property(name, kind, None if default == "null" else default, allowed, flags, text)


def parse_tables(*tables: str) -> dict[str, Property]:
    """Parse tables of properties into one mapping by name."""
    return {row.name: row for table in tables for row in parse_table(table)}
