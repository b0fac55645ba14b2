"""Protobuf's types as Spark's, read back from the protobuf package's encoding, framed and plain."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import json_format, message_factory
from pyspark.sql.pandas.types import to_arrow_type

from spark_integration.errors import PipelineError
from spark_integration.validate.choice import read_schema_file
from spark_integration.validate.dead import DeadLetterError
from spark_integration.validate.drift import RecordDrift, compare_types
from spark_integration.validate.protobuf import ProtobufDecoder, schema_descriptors
from spark_integration.validate.registry import Schema

ALL = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
enum Colour { NONE = 0; RED = 1; }
message Event {
  message Inner { sint32 x = 1; }
  int32 a = 1; int64 b = 2; uint32 c = 3; uint64 d = 4; float e = 5; double f = 6; bool g = 7; string h = 8; bytes i = 9;
  Colour j = 10; Inner k = 11; repeated Inner l = 12; repeated string m = 13; map<string, Inner> n = 14;
  google.protobuf.Timestamp o = 15; google.protobuf.Duration p = 16; google.protobuf.Int64Value q = 17;
  optional int32 r = 18; oneof one { string s = 19; int32 t = 20; } google.protobuf.Struct u = 21; map<int32, bytes> v = 22;
  Event w = 23;
}
message Second { message Deep { int32 z = 1; } }
"""
FULL = {
    "a": -1, "b": str(-(2**63)), "c": 2**32 - 1, "d": str(2**64 - 1), "e": 0.5, "f": 0.1, "g": True, "h": "é", "i": "AP8=",
    "j": "RED", "k": {"x": -5}, "l": [{"x": 1}, {}], "m": ["y"], "n": {"key": {"x": 2}}, "o": "2026-05-04T12:00:00.123456Z",
    "p": "1.5s", "q": "7", "r": 0, "t": 3, "u": {"any": [1]}, "v": {"1": "AA=="}, "w": {"a": 9},
}  # fmt: skip
HELD = {
    "a": -1, "b": -(2**63), "c": 2**32 - 1, "d": Decimal(2**64 - 1), "e": 0.5, "f": 0.1, "g": True, "h": "é", "i": b"\0\xff",
    "j": "RED", "k": {"x": -5}, "l": [{"x": 1}, {"x": 0}], "m": ["y"], "n": [("key", {"x": 2})],
    "o": datetime(2026, 5, 4, 12, 0, 0, 123456, tzinfo=timezone.utc), "p": timedelta(seconds=1.5), "q": 7, "r": 0, "s": None,
    "t": 3, "u": '{"any": [1.0]}', "v": [(1, b"\0")], "w": '{"a": 9}',
}  # fmt: skip


def make_schema(text: str) -> Schema:
    return Schema("PROTOBUF", text)


def write_message(text: str, name: str, **fields: Any) -> bytes:
    descriptor = schema_descriptors(make_schema(text)).pool.FindMessageTypeByName(name)
    message: Any = json_format.ParseDict(fields, message_factory.GetMessageClass(descriptor)())
    return bytes(message.SerializeToString())


def decode_value(protobuf: ProtobufDecoder, payload: bytes) -> Any:
    value, _ = protobuf.decode(payload, None)
    return pa.array([value], to_arrow_type(protobuf.type)).to_pylist()[0]


def test_types() -> None:
    protobuf = ProtobufDecoder(make_schema(ALL), None, framed=False)
    assert decode_value(protobuf, write_message(ALL, "shop.Event", **FULL)) == HELD
    types = {field.name: field.dataType.simpleString() for field in protobuf.type.fields}
    assert (types["c"], types["d"], types["o"]) == ("bigint", "decimal(20,0)", "timestamp")
    assert (types["n"], types["p"]) == ("map<string,struct<x:int>>", "interval day to second")


def test_unset_fields_have_their_default_or_null() -> None:
    """Without presence a field has the default of its type; with presence it is null."""
    values = decode_value(ProtobufDecoder(make_schema(ALL), None, framed=False), b"")
    nulls = {name for name, value in values.items() if value is None}
    assert nulls == set("kopqrstuw")
    assert (values["a"], values["h"], values["j"], values["l"], values["n"]) == (0, "", "NONE", [], [])


def test_an_enum_of_a_newer_version_is_its_number() -> None:
    assert decode_value(ProtobufDecoder(make_schema(ALL), None, framed=False), b"\x50\x07")["j"] == "7"


OLD = 'syntax = "proto3"; message First { int32 a = 1; string gone = 2; }'
NEW = 'syntax = "proto3"; message First { int32 a = 1; string more = 3; }'


def test_another_version_is_read_by_numbers() -> None:
    protobuf = ProtobufDecoder(make_schema(NEW), None, framed=False)
    value, unknown = protobuf.decode(write_message(OLD, "First", a=1, gone="x"), None)
    assert (value, unknown) == ({"a": 1, "more": ""}, [2])
    written_as = protobuf.type_of(make_schema(OLD))
    assert written_as is not None
    assert compare_types(written_as, protobuf.type) == RecordDrift(
        {"new value.gone", "missing value.more"}, {"value.a"}
    )


@pytest.mark.parametrize(
    ("indexes", "name"),
    [(b"\0", "shop.Event"), (b"\2\0", "shop.Event"), (b"\2\2", "shop.Second"), (b"\4\2\0", "shop.Second.Deep")],
)
def test_message_indexes(indexes: bytes, name: str) -> None:
    """Zigzag varints; 0 alone stands for the first message."""
    value, _ = ProtobufDecoder(make_schema(ALL), name, framed=True).decode(indexes, make_schema(ALL))
    assert value is not None
    other = ProtobufDecoder(make_schema(NEW), None, framed=True)
    with pytest.raises(DeadLetterError) as refused:
        other.decode(indexes, make_schema(ALL))
    assert (refused.value.reason, refused.value.detail) == ("other-message", f"holds {name}, not First")


@pytest.mark.parametrize("payload", [b"", b"\x80", b"\x01", b"\x02\x63", b"\0\xff", b"\0\x42\x01\xff", b"\xff" * 12])
def test_malformed_payloads_are_dead_letters(payload: bytes) -> None:
    with pytest.raises(DeadLetterError) as refused:
        ProtobufDecoder(make_schema(ALL), None, framed=True).decode(payload, make_schema(ALL))
    assert refused.value.reason == "malformed"


def test_a_required_field_that_is_missing() -> None:
    text = 'syntax = "proto2"; message First { required int32 a = 1; }'
    with pytest.raises(DeadLetterError, match="lacks required fields"):
        ProtobufDecoder(make_schema(text), None, framed=False).decode(b"", None)


def test_a_file_with_imports(tmp_path: Path) -> None:
    (tmp_path / "part.proto").write_text('syntax = "proto3"; message Part { int32 a = 1; }')
    path = tmp_path / "whole.proto"
    path.write_text('syntax = "proto3"; import "part.proto"; message Whole { Part part = 1; }')
    schema = read_schema_file(path, "protobuf")
    assert ProtobufDecoder(schema, None, framed=False).type.simpleString() == "struct<part:struct<a:int>>"
    descriptors = tmp_path / "whole.desc"
    descriptors.write_bytes(schema.text.encode("latin-1"))
    assert read_schema_file(descriptors, "protobuf") == schema


def test_schemas_of_other_subjects() -> None:
    part = 'syntax = "proto3"; message Part { int32 a = 1; }'
    text = 'syntax = "proto3"; import "parts/part.proto"; message Whole { Part part = 1; }'
    schema = Schema("PROTOBUF", text, (("parts/part.proto", part),))
    assert ProtobufDecoder(schema, "Whole", framed=True).type.simpleString() == "struct<part:struct<a:int>>"


MAPS = """
syntax = "proto3";
message Outer { map<string, int32> m = 1; message One { int32 x = 1; } message Two { int32 x = 1; } }
"""


@pytest.mark.parametrize(
    ("indexes", "name", "fits"),
    [
        (b"\4\0\0", "Outer.One", True),  # as Java counts
        (b"\4\0\2", "Outer.One", True),  # as Python and Go do
        (b"\4\0\2", "Outer.Two", True),
        (b"\4\0\4", "Outer.Two", True),
        (b"\4\0\0", "Outer.Two", False),
        (b"\4\0\4", "Outer.One", False),
    ],
)
def test_message_indexes_beside_maps(indexes: bytes, name: str, fits: bool) -> None:
    protobuf = ProtobufDecoder(make_schema(MAPS), name, framed=True)
    if fits:
        assert protobuf.decode(indexes + b"\x08\x05", make_schema(MAPS)) == ({"x": 5}, [])
    else:
        with pytest.raises(DeadLetterError, match="holds Outer"):
            protobuf.decode(indexes, make_schema(MAPS))


HOLDS_ANY = """
syntax = "proto3";
package shop;
import "google/protobuf/any.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
message Event { google.protobuf.Any a = 1; google.protobuf.Struct s = 2; Event inner = 3; google.protobuf.Timestamp t = 4; }
message Part { int32 x = 1; }
message Empty { }
message Holder { Empty e = 1; map<string, Empty> m = 2; }
"""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"@type": "type.googleapis.com/shop.Part", "x": 5}, '{"@type": "type.googleapis.com/shop.Part", "x": 5}'),
        ({}, "{}"),
    ],
)
def test_any_of_a_message_of_the_schema(content: dict[str, Any], text: str) -> None:
    descriptor = schema_descriptors(make_schema(HOLDS_ANY)).pool.FindMessageTypeByName("shop.Event")
    message: Any = message_factory.GetMessageClass(descriptor)()
    json_format.ParseDict({"a": content}, message, descriptor_pool=descriptor.file.pool)
    decoded = decode_value(ProtobufDecoder(make_schema(HOLDS_ANY), None, framed=False), message.SerializeToString())
    assert json.loads(decoded["a"]) == json.loads(text)


def test_any_of_an_unknown_message() -> None:
    url = b"x.y/other.Thing"
    content = b"\x0a" + bytes([len(url)]) + url + b"\x12\x02\xff\x00"
    payload = b"\x0a" + bytes([len(content)]) + content
    decoded = decode_value(ProtobufDecoder(make_schema(HOLDS_ANY), None, framed=False), payload)
    assert json.loads(decoded["a"]) == {"@type": "x.y/other.Thing", "value": "/wA="}


@pytest.mark.parametrize("inner", [False, True])
def test_a_message_that_json_cannot_hold(inner: bool) -> None:
    """NaN in a Struct, and an invalid time within a recursive type."""
    descriptor = schema_descriptors(make_schema(HOLDS_ANY)).pool.FindMessageTypeByName("shop.Event")
    message: Any = message_factory.GetMessageClass(descriptor)()
    if inner:
        message.inner.inner.t.seconds = 2**62
    else:
        message.s.fields["a"].number_value = float("nan")
    with pytest.raises(DeadLetterError) as refused:
        ProtobufDecoder(make_schema(HOLDS_ANY), None, framed=False).decode(message.SerializeToString(), None)
    assert refused.value.reason == "malformed"


def test_a_message_without_fields_is_json() -> None:
    protobuf = ProtobufDecoder(make_schema(HOLDS_ANY), "shop.Holder", framed=False)
    assert protobuf.type.simpleString() == "struct<e:string,m:map<string,string>>"
    assert decode_value(protobuf, b"\x0a\x00\x12\x05\x0a\x01k\x12\x00") == {"e": "{}", "m": [("k", "{}")]}
    assert decode_value(ProtobufDecoder(make_schema(HOLDS_ANY), "shop.Empty", framed=False), b"") == "{}"


@pytest.mark.parametrize(
    ("schema", "name", "problem"),
    [
        (make_schema("message { }"), None, "cannot be compiled"),
        (make_schema(NEW), "Second", "has no message Second: choose from First"),
        (make_schema('syntax = "proto3";'), None, "has no message"),
        (Schema("DESCRIPTORS", "\xff"), None, "descriptors cannot be read"),
        (Schema("PROTOBUF", NEW, (("../x.proto", NEW),)), None, "no name of a file"),
    ],
)
def test_a_schema_that_cannot_be_used(schema: Schema, name: str | None, problem: str) -> None:
    with pytest.raises(PipelineError, match=problem):
        ProtobufDecoder(schema, name, framed=False)
