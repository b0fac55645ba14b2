"""JSON Schema: types, and values that violate it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_integration.errors import PipelineError
from spark_integration.validate.dead import DeadLetterError
from spark_integration.validate.drift import RecordDrift
from spark_integration.validate.formats import DecodingPlan, make_format
from spark_integration.validate.json_schema import JsonSchemaValidator
from spark_integration.validate.registry import Schema


def make_schema(document: Any, *references: tuple[str, Any]) -> Schema:
    return Schema("JSON", json.dumps(document), tuple((name, json.dumps(text)) for name, text in references))


INTEGER = {"type": "integer"}
A = {"a": {"properties": {"a": INTEGER}}}
A_WITHIN = "struct<a:struct<a:bigint>>"


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({"type": "integer"}, "bigint"),
        ({"type": ["null", "number"]}, "double"),
        ({"type": ["integer", "number"]}, "double"),
        ({"type": ["string", "number"]}, "string"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "string", "format": "email"}, "string"),
        ({"enum": ["a"]}, "string"),
        ({"type": "array", "items": {"type": "boolean"}}, "array<boolean>"),
        ({"type": "array"}, "array<string>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map<string,bigint>"),
        ({"type": "object"}, "string"),
        ({"properties": {"a": {"type": "integer"}}}, "struct<a:bigint>"),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, "bigint"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, "bigint"),
        ({"properties": {"next": {"$ref": "#"}}}, "struct<next:struct<next:string>>"),
        (True, "string"),
        (
            {"properties": {"a": {"type": "integer"}}, "allOf": [{"properties": {"b": INTEGER}}]},
            "struct<b:bigint,a:bigint>",
        ),
        ({"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"c": INTEGER}}], "$defs": A}, "struct<a:bigint,c:bigint>"),
        ({"$ref": "#/$defs/a", "properties": {"c": INTEGER}, "$defs": A}, "struct<a:bigint,c:bigint>"),
        ({"type": "object", "properties": {"a": INTEGER}, "allOf": [{"required": ["a"]}]}, "struct<a:bigint>"),
        ({"properties": {"a": INTEGER}, "oneOf": [{"properties": {"b": INTEGER}}, {"required": ["a"]}]}, "string"),
        ({"properties": {"a": INTEGER}, "anyOf": [{"$ref": "#/$defs/a"}], "$defs": A}, "string"),
        ({"properties": {"a": INTEGER}, "anyOf": [{"required": ["a"]}, {"properties": {"a": {}}}]}, "struct<a:bigint>"),
        ({"properties": {"a": INTEGER}, "if": {}, "then": {"properties": {"b": INTEGER}}}, "string"),
        ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}, "bigint"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "string"),
        ({"$id": "http://x/s.json", "properties": {"a": {"$ref": "http://x/s.json#/$defs/a"}}, "$defs": A}, A_WITHIN),
        ({"$id": "http://x/s.json", "properties": {"a": {"$ref": "s.json#/$defs/a"}}, "$defs": A}, A_WITHIN),
        ({"properties": {"a": {"$ref": "#it"}}, "$defs": {"a": {"$anchor": "it", **A["a"]}}}, A_WITHIN),
        ({"$id": "http://x/s", "$ref": "part", "$defs": {"a": {"$id": "http://x/part", **A["a"]}}}, "struct<a:bigint>"),
    ],
)
def test_types(document: Any, kind: str) -> None:
    assert JsonSchemaValidator(make_schema(document)).type.simpleString() == kind


def test_a_schema_of_another_subject() -> None:
    part = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    judge = JsonSchemaValidator(make_schema({"properties": {"part": {"$ref": "part.json"}}}, ("part.json", part)))
    assert judge.type.simpleString() == "struct<part:struct<a:bigint>>"
    judge.check({"part": {"a": 1}})
    with pytest.raises(DeadLetterError, match=r"value\.part\.a: "):
        judge.check({"part": {"a": "x"}})


def test_a_referenced_document_that_names_itself() -> None:
    part = {"type": "object", "properties": {"a": INTEGER, "next": {"$ref": "part.json"}}}
    judge = JsonSchemaValidator(make_schema({"properties": {"part": {"$ref": "part.json"}}}, ("part.json", part)))
    assert judge.type.simpleString() == "struct<part:struct<a:bigint,next:string>>"
    judge.check({"part": {"a": 1, "next": {"a": 2}}})
    with pytest.raises(DeadLetterError):
        judge.check({"part": {"next": {"next": {"a": "x"}}}})


def test_nothing_is_fetched() -> None:
    with pytest.raises(PipelineError, match="is not among the schema's references"):
        JsonSchemaValidator(make_schema({"$ref": "http://127.0.0.1:9/other.json"}))


@pytest.mark.parametrize("text", ["{", '{"type": "nothing"}'])
def test_a_schema_that_cannot_be_used(text: str) -> None:
    with pytest.raises(PipelineError, match="cannot be used"):
        JsonSchemaValidator(Schema("JSON", text))


def test_values() -> None:
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}, "o": {"type": ["string", "null"]}},
        "required": ["n"],
    }
    made = make_format(DecodingPlan("json", "plain", make_schema(document)))
    drift = RecordDrift()
    assert made.decode(b'{"n": 1, "z": 0}', None, drift) == {"n": 1}
    assert drift == RecordDrift({"new value.z", "missing value.o"}, {"value.n"})
    for text, detail in (
        ('{"n": 0}', "value.n: 0 is less"),
        ("{}", 'value: "n" is a required'),
        ('{"n": "1"}', "value.n: "),
    ):
        with pytest.raises(DeadLetterError) as refused:
            made.decode(text.encode(), None, drift)
        assert refused.value.reason == "does-not-fit"
        assert refused.value.detail.startswith(detail)


def test_types_that_the_schema_allows_are_no_drift() -> None:
    made = make_format(
        DecodingPlan("json", "plain", make_schema({"properties": {"a": {"type": ["string", "number"]}}}))
    )
    drift = RecordDrift()
    assert made.decode(b'{"a": 5.10}', None, drift) == {"a": "5.10"}
    assert not drift.differs
