"""Values decoded by the schemas of a registry."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.cli.remote.records.avro_values import to_json_value
from kafkacompat.cli.remote.records.decoding import Failures
from kafkacompat.cli.remote.records.schema_values import RegistryDecoder
from spark_integration.validate.registry import RegistryError, Schema, UnknownSchemaError

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "data", "type": ["null", "bytes"]},
    ],
}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [{"name": "inner", "type": ["null", "Tree"]}],
}
PROTO = 'syntax = "proto3"; package shop; message Order { int64 id = 1; map<string, bytes> parts = 2; message Line { string a = 1; } }'


class StubRegistry:
    """Has these schemas by their ids; counts the requests."""

    url = "http://registry"

    def __init__(self, schemas: Mapping[int, Schema]) -> None:
        self._schemas = schemas
        self.requests: list[int] = []
        self.failure: Exception | None = None

    def by_id(self, schema_id: int) -> Schema:
        self.requests.append(schema_id)
        if self.failure is not None:
            raise self.failure
        if schema_id not in self._schemas:
            raise UnknownSchemaError("unknown")
        return self._schemas[schema_id]


def make_decoder(*schemas: Schema) -> tuple[RegistryDecoder, StubRegistry, Failures]:
    registry, failures = StubRegistry(dict(enumerate(schemas, 1))), Failures()
    return RegistryDecoder(registry, failures), registry, failures  # type: ignore[arg-type]


def frame(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def write_avro(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def make_avro(schema: Any) -> Schema:
    return Schema("AVRO", json.dumps(schema))


def test_avro_becomes_json() -> None:
    decoder, registry, failures = make_decoder(make_avro(ORDER))
    value = {"id": 7, "day": date(2026, 11, 27), "price": Decimal("12.50"), "data": b"\xff"}
    content = frame(1, write_avro(ORDER, value))
    decoded = [decoder.decode(content) for _ in range(3)]
    assert decoded[0].value == {"id": 7, "day": "2026-11-27", "price": "12.50", "data": "/w=="}
    assert (decoded[0].schema_id, decoded[0].to_line()[:8]) == (1, b'{"id":7,')
    assert len(registry.requests) == 1
    assert failures.sentences == []


def test_values_that_json_does_not_know() -> None:
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert to_json_value([float("nan"), 1.5, moment, ("a", 1)]) == ["nan", 1.5, "2026-01-01T00:00:00+00:00", ["a", 1]]


def test_protobuf_becomes_json_with_the_names_of_its_fields() -> None:
    decoder, _, failures = make_decoder(Schema("PROTOBUF", PROTO))
    order = b"\x08\x2a\x12\x08\x0a\x01x\x12\x03\x00\x01\xff"
    assert decoder.decode(frame(1, b"\x00" + order)).value == {"id": "42", "parts": {"x": "AAH/"}}
    assert decoder.decode(frame(1, b"\x04\x00\x00\x0a\x01y")).value == {"a": "y"}
    assert not decoder.decode(frame(1, b"\x02\x0a")).is_decoded
    assert failures.sentences == ["1 key or value could not be decoded: it does not fit its schema, of id 1"]


def test_json_with_a_schema() -> None:
    decoder, _, _ = make_decoder(Schema("JSON", '{"type": "object"}'))
    assert decoder.decode(frame(1, b'{"a": 1}')).value == {"a": 1}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the value does not begin with the header of a schema registry's serializers"),
        (b"plain text", "the value does not begin with the header of a schema registry's serializers"),
        (frame(9, b""), "the registry http://registry has no schema of the id 9"),
        (frame(1, b"\x01"), "it does not fit its schema, of id 1"),
        (
            frame(1, write_avro(ORDER, {"id": 1, "day": date(2026, 1, 1), "price": Decimal(1), "data": None}) + b"x"),
            "it does not",
        ),
        (frame(2, b""), "the schema of id 2 is of the unknown kind 'THRIFT'"),
        (frame(3, b""), "the Avro schema cannot be used (JSONDecodeError: "),
        (
            frame(4, b"\x80\x80\x80\x80\x80\x80\x80\x80\x02"),
            "the Avro schema cannot be used (ValueError: it has an array whose items",
        ),
        (frame(5, b""), "a Protobuf schema cannot be compiled ("),
    ],
)
def test_what_cannot_be_decoded_stays_as_it_is_and_is_counted(content: bytes, reason: str) -> None:
    endless = make_avro({"type": "array", "items": {"type": "record", "name": "N", "fields": []}})
    decoder, _, failures = make_decoder(
        make_avro(ORDER), Schema("THRIFT", ""), Schema("AVRO", "{"), endless, Schema("PROTOBUF", "message {")
    )
    decoded = decoder.decode(content)
    assert (decoded.content, decoded.is_decoded, decoded.to_line()) == (content, False, content)
    ((counted, count),) = failures.counts.items()
    assert (counted.startswith(reason), count) == (True, 1), counted


def test_a_value_that_is_nested_without_end_ends_nothing() -> None:
    decoder, _, failures = make_decoder(make_avro(TREE))
    assert decoder.decode(frame(1, b"\x02\x02\x00")).value == {"inner": {"inner": {"inner": None}}}
    assert not decoder.decode(frame(1, b"\x02" * 1_000_000)).is_decoded
    assert failures.sentences == ["1 key or value could not be decoded: it does not fit its schema, of id 1"]


def test_a_registry_that_does_not_answer_ends_the_command() -> None:
    decoder, registry, _ = make_decoder()
    registry.failure = RegistryError("the schema registry http://registry does not answer (refused): see that it runs")
    with pytest.raises(RemoteError, match="does not answer"):
        decoder.decode(frame(1, b""))
    registry.failure = TypeError("a list has no schema")
    with pytest.raises(RemoteError, match="http://registry does not answer as a schema registry does"):
        decoder.decode(frame(1, b""))
