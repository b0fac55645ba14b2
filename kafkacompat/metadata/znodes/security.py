"""The notifications of changed ACLs."""

from __future__ import annotations

from typing import NamedTuple

from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.values import (
    build_damage_error,
    encode_json,
    parse_fields,
    parse_text,
)

_EXTENDED_ACL_VERSION = 1
LITERAL = "LITERAL"


class AclChange(NamedTuple):
    """The resource whose ACLs were changed; types as in Kafka's enums, such as TOPIC and PREFIXED."""

    resource_type: str
    name: str
    pattern_type: str


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
