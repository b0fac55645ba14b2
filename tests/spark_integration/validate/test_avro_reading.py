"""Avro's bytes under schema resolution: unions, defaults, logical types, types of other schemas, damaged bytes."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from spark_integration.errors import PipelineError
from spark_integration.validate.avro import AvroDecoder
from spark_integration.validate.dead import DeadLetterError
from spark_integration.validate.registry import Schema
from tests.spark_integration.validate.test_avro import (
    COLOUR,
    IDENTITY,
    NOON,
    POINT,
    SPOT,
    make_logical_type,
    make_record_type,
    make_schema,
    round_trip,
    write_value,
)

NUMBERS = ["null", "int", "long", "float", "double", "string", "boolean"]


@pytest.mark.parametrize(
    ("branch", "value"),
    [(2, 5), (2, 2**40), (4, 0.5), (4, 3.141592653589793), (5, "x"), (6, True)],
)
def test_a_branch_of_a_union_is_the_one_that_was_written(branch: int, value: Any) -> None:
    """Of int and long it is the long, since Python has one type for both."""
    kind = make_record_type(a=NUMBERS)
    payload = bytes([branch * 2]) + write_value(NUMBERS[branch], value)
    decoded = AvroDecoder(make_schema(kind)).decode(payload, None)["a"]
    assert decoded == {f"member{branch - 1}": value}
    older = make_record_type(a=[*NUMBERS, "bytes"])
    assert AvroDecoder(make_schema(kind)).decode(payload, make_schema(older))["a"] == decoded


TWO = {"type": "fixed", "name": "Two", "size": 2}


@pytest.mark.parametrize(
    ("kind", "payload", "held"),
    [
        (["bytes", TWO], b"\x02ab", {"member1": b"ab"}),
        (["bytes", TWO], b"\x00\x04ab", {"member0": b"ab"}),
        (["string", COLOUR], b"\x02\x02", {"member1": "BLUE"}),
        (["string", COLOUR], b"\x00\x06RED", {"member0": "RED"}),
        ([COLOUR, "string"], b"\x02\x06RED", {"member1": "RED"}),
        (
            [make_logical_type("int", "time-millis"), make_logical_type("string", "uuid")],
            b"\x00\x02",
            {"member0": "00:00:00.001000"},
        ),
    ],
)
def test_branches_of_one_python_type(kind: Any, payload: bytes, held: Any) -> None:
    assert AvroDecoder(make_schema(make_record_type(a=kind))).decode(payload, None) == {"a": held}


@pytest.mark.parametrize(
    ("reader", "writer", "payload", "held"),
    [
        (["null", "string", COLOUR], COLOUR, b"\x02", {"member0": "BLUE"}),
        (["string", POINT, {"type": "map", "values": "int"}], POINT, b"\x02", {"member1": {"x": 1}}),
        (
            ["string", make_logical_type("long", "timestamp-millis")],
            "long",
            b"\x00",
            {"member1": datetime(1970, 1, 1, tzinfo=timezone.utc)},
        ),
    ],
)
def test_a_reader_has_a_union_where_the_writer_has_none(reader: Any, writer: Any, payload: bytes, held: Any) -> None:
    assert AvroDecoder(make_schema(make_record_type(a=reader))).decode(
        payload, make_schema(make_record_type(a=writer))
    ) == {"a": held}


NESTED = {
    "type": "record",
    "name": "Nested",
    "fields": [{"name": "x", "type": "int", "default": 7}, {"name": "y", "type": "bytes", "default": "\u0080"}],
}


@pytest.mark.parametrize(
    ("kind", "default", "held"),
    [
        ("bytes", "\u00ff", b"\xff"),
        (TWO, "\u00ff\u0000", b"\xff\0"),
        (make_logical_type("bytes", "decimal", precision=4, scale=2), "\u00ff\u009c", Decimal("-1.00")),
        (make_logical_type("fixed", "uuid", size=16, name="Id"), "\u00aa" * 16, "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"),
        (
            make_logical_type("fixed", "duration", size=12, name="Span"),
            "\u0001" + "\0" * 11,
            {"months": 1, "days": 0, "milliseconds": 0},
        ),
        (NESTED, {}, {"x": 7, "y": b"\x80"}),
        (NESTED, {"x": -300}, {"x": -300, "y": b"\x80"}),
        ({"type": "array", "items": "bytes"}, ["\u00fe", ""], [b"\xfe", b""]),
        ({"type": "map", "values": "long"}, {"k": 2**62}, [("k", 2**62)]),
        (["null", "int"], None, None),
        (["string", "int"], "é", {"member0": "é", "member1": None}),
        (COLOUR, "BLUE", "BLUE"),
        ("double", 1.5, 1.5),
        ("float", 0.5, 0.5),
        ("boolean", True, True),
        (make_logical_type("int", "date"), 1, date(1970, 1, 2)),
    ],
)
def test_defaults(kind: Any, default: Any, held: Any) -> None:
    reader = make_record_type(a=kind)
    reader["fields"][0]["default"] = default
    avro = AvroDecoder(make_schema(reader))
    decoded = avro.decode(write_value(make_record_type(b="int"), {"b": 1}), make_schema(make_record_type(b="int")))
    result = pa.array([decoded], to_arrow_type(avro.type)).to_pylist()[0]["a"]
    assert (result, type(result)) == (held, type(held))


def test_several_types_of_other_schemas_in_one_topic() -> None:
    """A registry's form of several kinds of events in one topic: a union of references."""
    first, second = ({"type": "record", "name": f"com.x.{name}", "fields": POINT["fields"]} for name in "AB")
    references = (("a", json.dumps(first)), ("b", json.dumps(second)))
    union = Schema("AVRO", '["com.x.A", "com.x.B"]', references)
    avro = AvroDecoder(union)
    assert avro.type.simpleString() == "struct<member0:struct<x:int>,member1:struct<x:int>>"
    assert avro.decode(b"\x02\x0a", union) == {"member1": {"x": 5}}
    name = Schema("AVRO", '"com.x.B"', references)
    assert AvroDecoder(name).decode(b"\x0a", name) == {"x": 5}


def test_a_union_within_a_referenced_schema() -> None:
    inner = {"type": "record", "name": "In", "fields": [{"name": "u", "type": [POINT, SPOT]}]}
    outer = Schema("AVRO", json.dumps(make_record_type(a="In")), (("in", json.dumps(inner)),))
    assert AvroDecoder(outer).decode(b"\x02\x0a", outer) == {"a": {"u": {"member1": {"x": 5}}}}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "held"),
    [
        (make_logical_type("long", "timestamp-millis"), "long", NOON, int(NOON.timestamp() * 1000)),
        (make_logical_type("int", "date"), "int", date(1970, 1, 3), 2),
        (make_logical_type("int", "time-millis"), "long", time(0, 0, 1), 1000),
        (make_logical_type("string", "uuid"), "string", IDENTITY, str(IDENTITY)),
        (make_logical_type("bytes", "decimal", precision=4, scale=2), "bytes", Decimal("-1.00"), b"\x9c"),
        (
            "long",
            make_logical_type("long", "timestamp-micros"),
            1_000_000,
            datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc),
        ),
        (make_logical_type("long", "timestamp-millis"), make_logical_type("long", "timestamp-micros"), NOON, NOON),
        (
            make_logical_type("int", "time-millis"),
            make_logical_type("long", "time-micros"),
            time(0, 0, 1),
            "00:00:01.000000",
        ),
        (
            make_logical_type("bytes", "decimal", precision=4, scale=1),
            make_logical_type("bytes", "decimal", precision=6, scale=2),
            Decimal("1.5"),
            Decimal("1.5"),
        ),
    ],
)
def test_a_logical_type_that_only_one_of_two_has(writer: Any, reader: Any, value: Any, held: Any) -> None:
    payload = write_value(make_record_type(a=writer), {"a": value})
    assert AvroDecoder(make_schema(make_record_type(a=reader))).decode(
        payload, make_schema(make_record_type(a=writer))
    ) == {"a": held}


NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
}


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (NODE, b"\x00\x02" * 100_000),  # fastavro's compiled reader ends the process
        (COLOUR, b"\x04"),
        (["int", "string"], b"\x04\x02a"),
        (make_logical_type("long", "timestamp-millis"), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    ],
)
def test_payloads_that_no_writer_writes_are_malformed(kind: Any, payload: bytes) -> None:
    with pytest.raises(DeadLetterError) as refused:
        AvroDecoder(make_schema(kind)).decode(payload, None)
    assert refused.value.reason == "malformed"


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        {"type": "fixed", "name": "Zero", "size": 0},
        {**make_record_type(), "name": "Empty"},
        {**make_record_type(a="null"), "name": "Empty"},
    ],
)
def test_an_array_of_items_without_bytes_is_refused(items: Any) -> None:
    """Two bytes would be a list of any length."""
    with pytest.raises(PipelineError, match="has an array whose items take no bytes"):
        AvroDecoder(make_schema(make_record_type(a={"type": "array", "items": items})))


def test_a_value_may_be_deep() -> None:
    decoded = AvroDecoder(make_schema(NODE)).decode(b"\x04\x02" * 100 + b"\x04\x00", None)
    text, depth = json.loads(decoded["next"]), 1
    while text is not None:
        text, depth = text["next"], depth + 1
    assert depth == 101


def test_unions_within_a_type_within_itself_have_no_names() -> None:
    kind = {**NODE, "fields": [NODE["fields"][0], {"name": "next", "type": ["null", POINT, "Node"]}]}
    decoded = AvroDecoder(make_schema(kind)).decode(b"\x00\x04\x02\x02\x0a", None)
    assert decoded == {"v": 0, "next": {"member1": '{"v": 1, "next": {"x": 5}}'}}


def test_a_record_without_fields_is_json() -> None:
    """Spark writes no struct without fields into files."""
    assert round_trip({"type": "record", "name": "Empty", "fields": []}, {}) == ("string", "{}")


def test_a_field_that_is_skipped_may_hold_itself() -> None:
    value = {"v": 1, "next": {"v": 2, "next": None}}
    payload = write_value(make_record_type(a=NODE, b="int"), {"a": value, "b": 5})
    assert AvroDecoder(make_schema(make_record_type(b="int"))).decode(
        payload, make_schema(make_record_type(a=NODE, b="int"))
    ) == {"b": 5}


def test_a_symbol_that_the_reader_does_not_know() -> None:
    more = {**COLOUR, "symbols": ["RED", "GREEN"]}
    payload = write_value(make_record_type(a=more), {"a": "GREEN"})
    with pytest.raises(DeadLetterError, match="GREEN not found in reader symbol list"):
        AvroDecoder(make_schema(make_record_type(a=COLOUR))).decode(payload, make_schema(make_record_type(a=more)))
    reader = make_record_type(a={**COLOUR, "default": "BLUE"})
    assert AvroDecoder(make_schema(reader)).decode(payload, make_schema(make_record_type(a=more))) == {"a": "BLUE"}
