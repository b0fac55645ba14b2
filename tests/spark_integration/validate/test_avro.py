"""Avro's types as Spark's, read back from fastavro's encoding, under schema resolution."""

from __future__ import annotations

import io
import json
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from spark_integration.errors import PipelineError
from spark_integration.validate.avro import AvroDecoder
from spark_integration.validate.dead import DeadLetterError
from spark_integration.validate.registry import Schema

NOON = datetime(2026, 5, 4, 12, 0, 0, 123000, tzinfo=timezone.utc)
IDENTITY = UUID("9ee46929-97de-4e7d-bac9-ed275e40742e")
POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
SPOT = {"type": "record", "name": "Spot", "fields": [{"name": "x", "type": "int"}]}
OTHER = {"type": "record", "name": "Other", "fields": [{"name": "y", "type": "int"}]}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}


def make_schema(kind: Any) -> Schema:
    return Schema("AVRO", json.dumps(kind))


def make_record_type(**fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "Event",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def make_logical_type(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


def write_value(kind: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(kind), value)
    return stream.getvalue()


def round_trip(kind: Any, value: Any) -> tuple[str, Any]:
    """Write and read a value; return its type in Spark and the value that pyarrow holds."""
    avro = AvroDecoder(make_schema(make_record_type(a=kind)))
    decoded = avro.decode(write_value(make_record_type(a=kind), {"a": value}), None)
    held = pa.array([decoded], to_arrow_type(avro.type)).to_pylist()[0]["a"]
    return avro.type["a"].dataType.simpleString(), held


@pytest.mark.parametrize(
    ("kind", "value", "spark", "held"),
    [
        ("null", None, "string", None),
        ("boolean", True, "boolean", True),
        ("int", -(2**31), "int", -(2**31)),
        ("long", 2**63 - 1, "bigint", 2**63 - 1),
        ("float", 0.5, "float", 0.5),
        ("double", 0.1, "double", 0.1),
        ("bytes", b"\0\xff", "binary", b"\0\xff"),
        ("string", "é", "string", "é"),
        (COLOUR, "BLUE", "string", "BLUE"),
        ({"type": "fixed", "name": "Two", "size": 2}, b"ab", "binary", b"ab"),
        ({"type": "array", "items": ["null", "int"]}, [1, None], "array<int>", [1, None]),
        ({"type": "map", "values": "long"}, {"a": 1}, "map<string,bigint>", [("a", 1)]),
        (POINT, {"x": 1}, "struct<x:int>", {"x": 1}),
        (["null", POINT], None, "struct<x:int>", None),
        (["null", COLOUR], "RED", "string", "RED"),
        (["int", "long"], 5, "bigint", 5),
        (["null", "float", "double"], 0.5, "double", 0.5),
        (make_logical_type("int", "date"), date(2026, 5, 4), "date", date(2026, 5, 4)),
        (make_logical_type("int", "time-millis"), time(1, 2, 3, 4000), "string", "01:02:03.004000"),
        (make_logical_type("long", "time-micros"), time(1, 2, 3, 4), "string", "01:02:03.000004"),
        (make_logical_type("long", "timestamp-millis"), NOON, "timestamp", NOON),
        (make_logical_type("long", "timestamp-micros"), NOON, "timestamp", NOON),
        (make_logical_type("long", "timestamp-nanos"), 7, "bigint", 7),
        (
            make_logical_type("long", "local-timestamp-millis"),
            NOON.replace(tzinfo=None),
            "timestamp_ntz",
            NOON.replace(tzinfo=None),
        ),
        (make_logical_type("string", "uuid"), IDENTITY, "string", str(IDENTITY)),
        (
            make_logical_type("bytes", "decimal", precision=10, scale=2),
            Decimal("-1.50"),
            "decimal(10,2)",
            Decimal("-1.50"),
        ),
        (make_logical_type("bytes", "decimal", precision=50, scale=1), Decimal("2.5"), "string", "2.5"),
        (
            make_logical_type("fixed", "decimal", precision=38, scale=0, size=16, name="Big"),
            Decimal("9" * 38),
            "decimal(38,0)",
            Decimal("9" * 38),
        ),
        (
            make_logical_type("fixed", "duration", size=12, name="Span"),
            bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]),
            "struct<months:bigint,days:bigint,milliseconds:bigint>",
            {"months": 1, "days": 2, "milliseconds": 3},
        ),
    ],
)
def test_types(kind: Any, value: Any, spark: str, held: Any) -> None:
    assert round_trip(kind, value) == (spark, held)


@pytest.mark.parametrize(
    ("value", "member", "held"),
    [
        ("text", 0, "text"),
        (7, 1, 7),
        (True, 2, True),
        (("Point", {"x": 1}), 3, {"x": 1}),
        (("Spot", {"x": 2}), 4, {"x": 2}),
        (("Colour", "RED"), 5, "RED"),
        (NOON, 6, NOON),
        ([1], 7, [1]),
    ],
)
def test_a_union_has_a_field_for_each_branch(value: Any, member: int, held: Any) -> None:
    array = {"type": "array", "items": "int"}
    kind = [
        "null",
        "string",
        "int",
        "boolean",
        POINT,
        SPOT,
        COLOUR,
        make_logical_type("long", "timestamp-millis"),
        array,
    ]
    _, decoded = round_trip(kind, value)
    assert decoded == {f"member{number}": held if number == member else None for number in range(8)}


def test_a_type_within_itself_becomes_json() -> None:
    node: dict[str, Any] = {"type": "record", "name": "Node", "fields": [{"name": "n", "type": "int"}]}
    node["fields"].append({"name": "next", "type": ["null", "Node"]})
    value = {"n": 1, "next": {"n": 2, "next": {"n": 3, "next": None}}}
    kind, held = round_trip(node, value)
    assert kind == "struct<n:int,next:string>"
    assert json.loads(held["next"]) == value["next"]


def test_an_older_version_is_read_by_the_newer() -> None:
    """Defaults, another order, promotions, an alias, a dropped field, a union where there was none."""
    old = make_record_type(gone="string", number="int", point=POINT, word="string", when="long")
    new = {
        "type": "record",
        "name": "Event",
        "fields": [
            {"name": "title", "type": "string", "aliases": ["word"]},
            {"name": "number", "type": ["null", "long"]},
            {"name": "extra", "type": {"type": "map", "values": "int"}, "default": {"a": 1}},
            {"name": "point", "type": ["null", COLOUR, OTHER, POINT]},
            {"name": "when", "type": make_logical_type("long", "timestamp-millis")},
        ],
    }
    avro = AvroDecoder(make_schema(new))
    value = {"gone": "x", "number": 1, "point": {"x": 2}, "word": "w", "when": 86_400_000}
    decoded = avro.decode(write_value(old, value), make_schema(old))
    assert decoded == {
        "title": "w",
        "number": 1,
        "extra": [("a", 1)],
        "point": {"member2": {"x": 2}},
        "when": datetime(1970, 1, 2, tzinfo=timezone.utc),
    }


@pytest.mark.parametrize(
    ("payload", "writer", "reason"),
    [
        (b"", None, "malformed"),
        (b"\x02", None, "malformed"),
        (write_value(make_record_type(a="string"), {"a": "x"}) + b"\0", None, "malformed"),
        (b"\x02\xff", None, "malformed"),
        (
            write_value(make_record_type(a="boolean"), {"a": True}),
            make_schema(make_record_type(a="boolean")),
            "does-not-fit",
        ),
        (
            write_value(make_record_type(b="string"), {"b": "x"}),
            make_schema(make_record_type(b="string")),
            "does-not-fit",
        ),
    ],
)
def test_malformed_payloads_are_dead_letters(payload: bytes, writer: Schema | None, reason: str) -> None:
    with pytest.raises(DeadLetterError) as refused:
        AvroDecoder(make_schema(make_record_type(a="string"))).decode(payload, writer)
    assert refused.value.reason == reason


def test_types_of_other_schemas() -> None:
    """Types from a registry's references, which other schemas name."""
    middle = json.dumps({"type": "record", "name": "Middle", "fields": [{"name": "p", "type": "Point"}]})
    top = Schema("AVRO", json.dumps(make_record_type(m="Middle")), (("Point", json.dumps(POINT)), ("Middle", middle)))
    avro = AvroDecoder(top)
    assert avro.type.simpleString() == "struct<m:struct<p:struct<x:int>>>"
    assert avro.decode(b"\x0a", top) == {"m": {"p": {"x": 5}}}


@pytest.mark.parametrize("text", ["{", '{"type": "record"}', '{"type": "nothing"}', "[]]"])
def test_a_schema_that_cannot_be_read(text: str) -> None:
    with pytest.raises(PipelineError, match=r"the Avro schema .* cannot be read"):
        AvroDecoder(Schema("AVRO", text))
