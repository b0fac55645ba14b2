"""The values of the znodes below /delegation_token: tokens without their secrets, and the notifications of their changes."""

from __future__ import annotations

from kafkacompat.metadata.znodes.paths import decode_name, encode_name
from kafkacompat.metadata.znodes.values import INT64_MAX, Schema, build_damage_error, parse_fields, parse_text
from kafkacompat.security.principals import Principal, parse_principal
from kafkacompat.security.tokens import TokenInfo

TOKEN = Schema(3, "owner", "tokenRequester", "renewers", "issueTimestamp", "maxTimestamp", "expiryTimestamp", "tokenId")
_OLDEST_VERSION = 1
_REQUESTER_VERSION = 3


def encode_token(path: str, token: TokenInfo, before: bytes | None = None) -> bytes:
    """Encode a token as Kafka 3.3 and later does, over the stored value *before*."""
    fields = {
        "owner": encode_name(str(token.owner)),
        "tokenRequester": encode_name(str(token.requester)),
        "renewers": [encode_name(str(renewer)) for renewer in token.renewers],
        "issueTimestamp": token.issued_at_ms,
        "maxTimestamp": token.ends_at_ms,
        "expiryTimestamp": token.expires_at_ms,
        "tokenId": token.token_id,
    }
    return TOKEN.encode(path, fields, before)


def decode_token(path: str, value: bytes) -> TokenInfo:
    """Decode a token; raises StoreError. Before version 3 the owner has requested the token itself."""
    fields = parse_fields(path, value)
    version = fields.integer("version", low=_OLDEST_VERSION)
    owner = _decode_principal(path, fields.text("owner"))
    requester = owner
    if version >= _REQUESTER_VERSION:
        requester = _decode_principal(path, fields.text("tokenRequester"))
    issued, ends, expires = (
        fields.integer(name, low=0, high=INT64_MAX) for name in ("issueTimestamp", "maxTimestamp", "expiryTimestamp")
    )
    renewers = tuple(_decode_principal(path, renewer) for renewer in fields.texts("renewers"))
    return TokenInfo(fields.text("tokenId"), owner, requester, renewers, issued, expires, ends)


def _decode_principal(path: str, text: str) -> Principal:
    try:
        return parse_principal(decode_name(text))
    except ValueError as problem:
        raise build_damage_error(path, str(problem)) from None


def encode_token_change(token_id: str) -> bytes:
    """Encode the notification of a changed token: its id."""
    return token_id.encode()


def decode_token_change(path: str, value: bytes) -> str:
    """Decode the notification of a changed token; raises StoreError."""
    return parse_text(path, value)
