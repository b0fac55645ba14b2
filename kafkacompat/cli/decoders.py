"""Decoders of the records of internal topics: JSON with the names of Kafka's schemas, as DumpLogSegments writes it."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kafkacompat.groups.records import KINDS
from kafkacompat.storage.inspection.rows import Decoder
from kafkacompat.transactions.records import KEY_VERSION, TransactionLogKey, TransactionLogValue
from kafkacompat.wire.compiler import decode_message
from kafkacompat.wire.consumer_protocol import read_assignment, read_subscription
from kafkacompat.wire.metadata_records import RECORD_TYPES
from kafkacompat.wire.primitives import Buffer, MalformedError, format_uuid, read_uvarint
from kafkacompat.wire.record_batch import Record
from kafkacompat.wire.schema import Field, Message, Struct

CONSUMER_PROTOCOL = "consumer"
_VERSION = struct.Struct(">h")


_Kinds: TypeAlias = "Mapping[int, tuple[type[Message], type[Message]]]"
"""By the version a key begins with: the key and its value."""

_TRANSACTIONS: _Kinds = {KEY_VERSION: (TransactionLogKey, TransactionLogValue)}


def coordinator_decoder(kinds: _Kinds) -> Decoder:
    """Build the decoder of a coordinator's topic, whose keys and values begin with a version; a key's names its type."""

    def decode_record(record: Record) -> tuple[str | None, str | None]:
        try:
            return _decode_coordinator_record(kinds, record)
        except MalformedError as error:
            return f"Error at offset {record.offset}, skipping. {error}", None

    return decode_record


def _decode_coordinator_record(kinds: _Kinds, record: Record) -> tuple[str | None, str | None]:
    kind, key = _split_version(record.key or b"")
    if kind not in kinds:
        return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
    key_type, value_type = kinds[kind]
    key_text = _to_compact_json({"type": str(kind), "data": message_to_json(decode_message(key_type, key, 0), 0)})
    if record.value is None:
        return key_text, "<DELETE>"
    version, value = _split_version(record.value)
    if version not in value_type.VERSIONS:
        raise MalformedError(f"{value_type.__name__} has no version {version}")
    data = message_to_json(decode_message(value_type, value, version), version)
    if data.get("protocolType") == CONSUMER_PROTOCOL:
        for member in data["members"]:
            _decode_consumer_protocol(member, "subscription", read_subscription)
            _decode_consumer_protocol(member, "assignment", read_assignment)
    return key_text, _to_compact_json({"version": str(version), "data": data})


def _decode_consumer_protocol(member: dict[str, Any], field: str, read: Callable[[Buffer], Message]) -> None:
    """Replace the bytes of the consumer protocol by the decoded message; malformed bytes stay."""
    data = base64.b64decode(member[field])
    try:
        message = read(data)
    except MalformedError:
        return
    member[field] = message_to_json(message, min(_split_version(data)[0], message.VERSIONS.last))


def _split_version(data: bytes) -> tuple[int, bytes]:
    if len(data) < _VERSION.size:
        raise MalformedError(f"{len(data)} bytes have no room for a version")
    return _VERSION.unpack_from(data)[0], data[_VERSION.size :]


def _to_compact_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def message_to_json(message: Struct, version: int) -> dict[str, Any]:
    """Build a dictionary of a version's fields by Kafka's names; tagged fields only if they differ from their default."""
    return {
        _camel_case(name): _to_json_value(getattr(message, name), field, version)
        for name, field in message.FIELDS.items()
        if version in field.versions and (version not in field.tagged or _is_written(getattr(message, name), field))
    }


def _is_written(value: Any, field: Field) -> bool:
    """Return whether Kafka writes a tagged field; it writes every struct, also null."""
    return value != field.default or field.kind == "struct"


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _to_json_value(value: Any, field: Field, version: int) -> Any:
    if value is None:
        return None
    if field.kind == "uuid":
        return format_uuid(value)
    if field.kind == "array" and field.element is not None:
        return [_to_json_value(item, field.element, version) for item in value]
    if isinstance(value, Struct):
        return message_to_json(value, version)
    return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray, memoryview)) else value


offsets_decoder = coordinator_decoder(KINDS)
transaction_log_decoder = coordinator_decoder(_TRANSACTIONS)


def cluster_metadata_decoder(record: Record) -> tuple[str | None, str | None]:
    """Decode a record of `__cluster_metadata`; an unknown type shows the fields' bytes in base64."""
    try:
        return None, _to_compact_json(_decode_metadata_record(record.value or b""))
    except MalformedError as error:
        return f"Error at offset {record.offset}, skipping. {error}", None


def _decode_metadata_record(value: bytes) -> dict[str, Any]:
    position = read_uvarint(value, 0)[1]
    number, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    message = RECORD_TYPES.get(number)
    if message is None or version not in message.VERSIONS:
        return {"type": number, "version": version, "data": base64.b64encode(value[position:]).decode()}
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", message.__name__).upper()
    return {
        "type": name,
        "version": version,
        "data": message_to_json(decode_message(message, value[position:], version), version),
    }
