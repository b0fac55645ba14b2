"""The values of the znodes of delegation tokens (KIP-48), and the notifications of changed tokens and ACLs."""

from __future__ import annotations

from typing import NamedTuple

from kafkacompat.metadata.znodes.paths import Znode, decode_name, encode_name
from kafkacompat.metadata.znodes.values import (
    INT64_MAX,
    build_damage_error,
    encode_json,
    parse_fields,
    parse_text,
)

_TOKEN_VERSION = 3
_EXTENDED_ACL_VERSION = 1
LITERAL = "LITERAL"


class DelegationToken(NamedTuple):
    """A delegation token without its secret, which brokers compute; principals are in the form "User:alice"."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    max_ms: int
    expires_ms: int


class AclChange(NamedTuple):
    """The resource whose ACLs were changed; types as in Kafka's enums, such as TOPIC and PREFIXED."""

    resource_type: str
    name: str
    pattern_type: str


def encode_token(token: DelegationToken) -> bytes:
    """Encode the value of /delegation_token/tokens/T, in version 3."""
    return encode_json(
        {
            "version": _TOKEN_VERSION,
            "owner": encode_name(token.owner),
            "tokenRequester": encode_name(token.requester),
            "renewers": [encode_name(renewer) for renewer in token.renewers],
            "issueTimestamp": token.issued_ms,
            "maxTimestamp": token.max_ms,
            "expiryTimestamp": token.expires_ms,
            "tokenId": token.token_id,
        }
    )


def decode_token(token_id: str, value: bytes) -> DelegationToken:
    """Decode the value of /delegation_token/tokens/T; before version 3 (KIP-373) the owner is the requester. Raises StoreError."""
    fields = parse_fields(Znode.TOKEN.path(token_id=token_id), value)
    owner = fields.text("owner")
    issued_ms, max_ms, expires_ms = (
        fields.integer(name, low=0, high=INT64_MAX) for name in ("issueTimestamp", "maxTimestamp", "expiryTimestamp")
    )
    return DelegationToken(
        fields.text("tokenId"),
        decode_name(owner),
        decode_name(fields.text("tokenRequester", owner)),
        tuple(map(decode_name, fields.texts("renewers"))),
        issued_ms,
        max_ms,
        expires_ms,
    )


def encode_token_change(token_id: str) -> bytes:
    """Encode the value of /delegation_token/token_changes/token_change_."""
    return token_id.encode()


def decode_token_change(path: str, value: bytes) -> str:
    """Decode the value of /delegation_token/token_changes/token_change_ and return the token's id; raises StoreError."""
    return parse_text(path, value)


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
