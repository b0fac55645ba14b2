"""Values of Avro, read by fastavro with the schema that they were written with, as what JSON can hold."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from typing import TYPE_CHECKING, Any

from kafkacompat.cli.remote.errors import RemoteError, explain_missing_library
from spark_integration.errors import PipelineError

if TYPE_CHECKING:
    from spark_integration.validate.registry import Schema

ReadValue = Callable[[bytes], Any]
"""Reads the bytes after the header of a value."""


def make_avro_reader(schema: Schema) -> ReadValue:
    """Return the reader of a schema; raises PipelineError if the schema cannot be used, RemoteError without fastavro."""
    try:
        import fastavro
        from fastavro._read_py import schemaless_reader as read_deep
        from fastavro.schema import SchemaParseException
    except ImportError:
        raise RemoteError(explain_missing_library("fastavro", "schemas")) from None

    named: dict[str, Any] = {}
    try:
        for _, text in schema.references:
            fastavro.parse_schema(json.loads(text), named_schemas=named)
        parsed: Any = fastavro.parse_schema(json.loads(schema.text), named_schemas=named)
        survey = SchemaSurvey(named)
        survey.check(parsed)
    except (SchemaParseException, ValueError, KeyError, TypeError, RecursionError) as problem:
        raise PipelineError(
            f"the Avro schema cannot be used ({type(problem).__name__}: {problem}): correct it"
        ) from None
    # If values are nested too deeply, the compiled reader ends the process, and the other one raises RecursionError.
    read = read_deep if survey.is_recursive else fastavro.schemaless_reader

    def read_value(payload: bytes) -> Any:
        stream = io.BytesIO(payload)
        value = to_json_value(read(stream, parsed, None))
        if stream.tell() != len(payload):
            raise ValueError("bytes are left after the value")
        return value

    return read_value


class SchemaSurvey:
    """Checks a schema that fastavro has parsed; ``is_recursive`` says that a type is within itself."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._within: list[str] = []
        self.is_recursive = False

    def check(self, schema: Any) -> int:
        """Return the fewest bytes of a value; raises ValueError for an array that a few bytes could make endless."""
        if isinstance(schema, list):
            for branch in schema:
                self.check(branch)
            return 1
        if isinstance(schema, str):
            if schema in self._within:
                self.is_recursive = True
                return 1
            return self.check(self._named[schema]) if schema in self._named else int(schema != "null")
        kind = schema["type"]
        if kind in ("record", "error"):
            self._within.append(schema["name"])
            size_bytes = sum([self.check(field["type"]) for field in schema["fields"]])
            self._within.pop()
            return size_bytes
        if kind == "array":
            if not self.check(schema["items"]):
                raise ValueError("it has an array whose items take no bytes")
            return 1
        if kind == "map":
            self.check(schema["values"])
            return 1
        if kind == "fixed":
            return int(schema["size"])
        return 1 if kind == "enum" else self.check(kind)


def to_json_value(value: Any) -> Any:
    """Return a value of fastavro as JSON can hold it: bytes in base64, times in ISO 8601, decimals as text."""
    if isinstance(value, dict):
        return {str(name): to_json_value(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json_value(inner) for inner in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (date, time)):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else str(value)
