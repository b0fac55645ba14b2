"""JSON Schema: what its types are as Spark's, and values judged by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_integration.errors import PipelineError
from spark_integration.validate.dead import DeadLetterError, shown
from spark_integration.validate.registry import Schema

SCALAR: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "integer": LongType(),
    "number": DoubleType(),
    "string": StringType(),
}
FORMATS: Mapping[str, DataType] = {"date-time": TimestampType(), "date": DateType()}


class Judge:
    """Says what of a value is against a schema; *type* is what Spark calls what it describes."""

    def __init__(self, schema: Schema) -> None:
        try:
            document = json.loads(schema.text)
            references = {name: json.loads(text) for name, text in schema.references}
            self._validator = jsonschema_rs.validator_for(document, retriever=_local(references))
        except (ValueError, jsonschema_rs.ValidationError) as problem:
            told = str(problem).splitlines()[0]
            raise PipelineError(
                f"the JSON Schema {shown(schema.text)} cannot be used ({told}): correct it"
            ) from problem
        self.type = _Types(document, references).of(document)

    def check(self, value: Any) -> None:
        """Raise DeadLetterError with the first thing that is against the schema."""
        for problem in self._validator.iter_errors(value):
            path = ".".join(["value", *map(str, problem.instance_path)])
            raise DeadLetterError("does-not-fit", f"{path}: {problem.message}")


def _local(references: Mapping[str, Any]) -> Any:
    """Resolve what the registry told of; nothing that a schema names is fetched from elsewhere."""

    def retrieve(uri: str) -> Any:
        for name, document in references.items():
            if uri == name or uri.endswith(f"/{name}"):
                return document
        raise ValueError(f"{uri} is not among the schema's references")

    return retrieve


class _Types:
    """Finds types; what has none in Spark (several at once, or within itself) stays JSON text."""

    def __init__(self, document: Any, references: Mapping[str, Any]) -> None:
        self._document = document
        self._references = references
        self._within: list[str] = []

    def of(self, schema: Any) -> DataType:
        if not isinstance(schema, dict):
            return StringType()
        if "$ref" in schema:
            return self._referred(schema["$ref"])
        for word in ("oneOf", "anyOf", "allOf"):
            if word in schema and "properties" not in schema:
                return self._one_of(schema[word])
        return self._typed(schema)

    def _typed(self, schema: Mapping[str, Any]) -> DataType:
        kinds = schema.get("type", "object" if "properties" in schema else [])
        named = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null"]
        if len(named) != 1:
            return DoubleType() if set(named) == {"integer", "number"} else StringType()
        if named[0] == "object":
            return self._object(schema)
        if named[0] == "array":
            return ArrayType(self.of(schema.get("items")))
        if named[0] == "string":
            return FORMATS.get(schema.get("format", ""), StringType())
        return SCALAR.get(named[0], StringType())

    def _object(self, schema: Mapping[str, Any]) -> DataType:
        if properties := schema.get("properties"):
            return StructType([StructField(name, self.of(inner)) for name, inner in properties.items()])
        if isinstance(schema.get("additionalProperties"), dict):
            return MapType(StringType(), self.of(schema["additionalProperties"]))
        return StringType()

    def _one_of(self, branches: list[Any]) -> DataType:
        inner = [one for one in branches if not (isinstance(one, dict) and one.get("type") == "null")]
        return self.of(inner[0]) if len(inner) == 1 else StringType()

    def _referred(self, reference: str) -> DataType:
        if reference in self._within:
            return StringType()
        self._within.append(reference)
        try:
            return self._at(reference)
        finally:
            self._within.pop()

    def _at(self, reference: str) -> DataType:
        name, _, pointer = reference.partition("#")
        document = self._references.get(name) if name else self._document
        found = document
        for step in pointer.strip("/").split("/") if pointer.strip("/") else ():
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if name and document is not None:
            return _Types(document, self._references).of(found)
        return self.of(found)
