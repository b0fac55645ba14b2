"""The values of the znodes of access rules (ACLs), and of the notifications of their changes.

Literal rules are below /kafka-acl, prefixed ones below /kafka-acl-extended (KIP-290).
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

from kafkacompat.metadata.znodes.paths import Znode, encode_group
from kafkacompat.metadata.znodes.values import (
    Fields,
    Schema,
    build_damage_error,
    encode_json,
    parse_fields,
    parse_text,
    quote_name,
)
from kafkacompat.security.acls.model import (
    AccessRule,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResourceType,
    PatternType,
)
from kafkacompat.security.acls.table import RuleSet

ACLS = Schema(1, "acls")

_EXTENDED_ACL_VERSION = 1
LITERAL = "LITERAL"

_TYPES = {kind.word: kind for kind in AclResourceType}
_CHANGED_TYPES = {name: kind for kind in AclResourceType for name in (kind.name, kind.word.upper())}
_OPERATIONS = {operation.word.lower(): operation for operation in AclOperation}
_PERMISSIONS = {permission.word.lower(): permission for permission in AclPermission}
_Word = TypeVar("_Word", AclOperation, AclPermission)


# Keys


def format_acl_key(pattern: AclPattern) -> str:
    """Build the key of a pattern's rules.

    Kafka writes the resource's name as it is, and so does this function, unless the name has a character that ZooKeeper refuses.
    """
    kind, pattern_type, name = pattern
    if pattern_type is PatternType.LITERAL:
        return Znode.ACLS.path(resource_type=kind.word, name=encode_group(name))
    return Znode.EXTENDED_ACLS.path(pattern_type="prefixed", resource_type=kind.word, name=encode_group(name))


def find_acl_key(pattern: AclPattern, stored: Container[str]) -> str:
    """Return the key that has a pattern's rules, or shall have them. Kafka does not encode a '%'."""
    key = format_acl_key(pattern)
    as_kafka_writes = _write_as_kafka(key, pattern.name)
    return as_kafka_writes if key not in stored and as_kafka_writes in stored else key


def _write_as_kafka(key: str, name: str) -> str:
    return key if "/" in name else f"{key.rpartition('/')[0]}/{name}"


def parse_acl_key(key: str) -> AclPattern | None:
    """Parse a key that `format_acl_key` or Kafka wrote; None for any other key."""
    if (names := Znode.ACLS.match(key)) is not None:
        pattern_type = PatternType.LITERAL
    elif (names := Znode.EXTENDED_ACLS.match(key)) is not None and names["pattern_type"] == "prefixed":
        pattern_type = PatternType.PREFIXED
    else:
        return None
    kind = _TYPES.get(names["resource_type"])
    return None if kind is None else AclPattern(kind, pattern_type, _decode_resource_name(names["name"]))


def _decode_resource_name(text: str) -> str:
    name = unquote(text)
    return name if encode_group(name) == text else text


# Values


def encode_rules(path: str, rules: RuleSet, before: bytes | None = None) -> bytes:
    """Encode the rules of one pattern, over the stored value *before*."""
    fields = [
        {
            "principal": rule.principal,
            "permissionType": rule.permission.word,
            "operation": rule.operation.word,
            "host": rule.host,
        }
        for rule in sorted(rules)
    ]
    return ACLS.encode(path, {"acls": fields}, before)


def read_rules(fields: Fields) -> RuleSet:
    """Read the parsed rules of one pattern; raises StoreError."""
    return RuleSet(
        AccessRule(
            item.text("principal"),
            item.text("host"),
            _read_word(item, "operation", _OPERATIONS),
            _read_word(item, "permissionType", _PERMISSIONS),
        )
        for item in fields.nested_list("acls")
    )


def _read_word(fields: Fields, name: str, words: dict[str, _Word]) -> _Word:
    word = fields.text(name)
    if word.lower() not in words:
        raise build_damage_error(fields.path, f"{quote_name(name)} is {quote_name(word)}, which no rule may have")
    return words[word.lower()]


# Notifications


class AclChange(NamedTuple):
    """The resource whose ACLs were changed; types as in Kafka's enums, such as TOPIC and PREFIXED."""

    resource_type: str
    name: str
    pattern_type: str

    @property
    def keys(self) -> list[str]:
        """The keys that may have the changed rules: that of this broker, and Kafka's; none if the type is not known."""
        kind = _CHANGED_TYPES.get(self.resource_type)
        if kind is None or self.pattern_type not in PatternType.__members__:
            return []
        key = format_acl_key(AclPattern(kind, PatternType[self.pattern_type], self.name))
        return list(dict.fromkeys((key, _write_as_kafka(key, self.name))))


def build_notification(pattern: AclPattern) -> tuple[str, bytes]:
    """Return the prefix of the sequential znode that announces changed rules, and its value."""
    znode = Znode.ACL_CHANGE if pattern.pattern_type is PatternType.LITERAL else Znode.EXTENDED_ACL_CHANGE
    change = AclChange(pattern.resource_type.name, pattern.name, pattern.pattern_type.name)
    return znode.path(sequence=""), encode_acl_change(change)


def encode_acl_change(change: AclChange) -> bytes:
    """Encode the value of /kafka-acl-changes/acl_changes_, or of /kafka-acl-extended-changes/acl_changes_ (KIP-290)."""
    if change.pattern_type == LITERAL:
        return f"{change.resource_type}:{change.name}".encode()
    return encode_json(
        {
            "version": _EXTENDED_ACL_VERSION,
            "resourceType": change.resource_type,
            "name": change.name,
            "patternType": change.pattern_type,
        }
    )


def decode_acl_change(path: str, value: bytes) -> AclChange:
    """Decode a notification of changed ACLs; raises StoreError. Before 2.0 the type was written as "Topic"."""
    if Znode.EXTENDED_ACL_CHANGE.match(path):
        fields = parse_fields(path, value)
        return AclChange(fields.text("resourceType").upper(), fields.text("name"), fields.text("patternType").upper())
    resource_type, colon, name = parse_text(path, value).partition(":")
    if not colon:
        raise build_damage_error(path, "it is not TYPE:NAME")
    return AclChange(resource_type.upper(), name, LITERAL)
