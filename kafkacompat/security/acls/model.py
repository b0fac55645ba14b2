"""The vocabulary of access rules, in Kafka's words and with its numbers on the wire (KIP-11, KIP-290, KIP-373)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

ANY = 1
"""In a filter: every value of a field."""
WILDCARD = "*"
CLUSTER_NAME = "kafka-cluster"
"""The one resource of type CLUSTER."""
ALL_USERS = "User:*"


def _join_words(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


class AclResourceType(IntEnum):
    """What a rule protects."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    @property
    def word(self) -> str:
        """The name in Kafka's stored rules and log lines, such as TransactionalId."""
        return _join_words(self.name)


class PatternType(IntEnum):
    """How a rule's name selects resources: the one of that name, or all whose names begin with it."""

    LITERAL = 3
    PREFIXED = 4


MATCH = 2
"""In a filter, instead of a PatternType: every rule that applies to a resource of the given name."""


class AclOperation(IntEnum):
    """What a rule allows or denies."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    @property
    def word(self) -> str:
        """The name in Kafka's stored rules, such as DescribeConfigs."""
        return _join_words(self.name)


class AclPermission(IntEnum):
    """The effect of a rule."""

    DENY = 2
    ALLOW = 3

    @property
    def word(self) -> str:
        """The name in Kafka's stored rules."""
        return _join_words(self.name)


class AclPattern(NamedTuple):
    """The resources that a rule applies to. The literal name ``*`` selects every resource of the type."""

    resource_type: AclResourceType
    pattern_type: PatternType
    name: str

    def covers(self, name: str) -> bool:
        """Return whether a resource of this type and of that name is selected."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


class AccessRule(NamedTuple):
    """Who may do what, or may not. ``host`` is the client's address; ``*`` stands for all. ``principal`` is TYPE:NAME."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


class Acl(NamedTuple):
    """A rule with its resources."""

    pattern: AclPattern
    rule: AccessRule
