"""Avro: values decoded by fastavro, with Avro's schema resolution."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import fastavro
from fastavro._read_py import schemaless_reader as deep_reader
from fastavro.schema import SchemaParseException
from pyspark.sql.types import DataType

from spark_integration.errors import PipelineError
from spark_integration.validate.avro_resolution import drop_logical_types, fill_defaults
from spark_integration.validate.avro_types import AvroShapes, has_named_unions
from spark_integration.validate.dead import DeadLetterError, shorten_value
from spark_integration.validate.registry import Schema

# The name of a record with one field, which holds the value. Outside of records fastavro parses names and unions again
# for each value.
VALUE = "kafkacompat_value"
LOGICAL = '"logicalType"'


class ParsedAvroSchema:
    """A schema that fastavro has parsed, and all types that it names."""

    def __init__(self, schema: Schema) -> None:
        self.named: dict[str, Any] = {}
        for _, text in schema.references:
            fastavro.parse_schema(json.loads(text), named_schemas=self.named)
        record: dict[str, Any] = {
            "type": "record",
            "name": VALUE,
            "fields": [{"name": VALUE, "type": json.loads(schema.text)}],
        }
        whole: Any = fastavro.parse_schema(record, named_schemas=self.named)
        self.schema, self.value = whole, whole["fields"][0]["type"]
        fill_defaults(self.named)
        self.tells_names = any(has_named_unions(named_type) for named_type in self.named.values())
        shapes = AvroShapes(self.named, self.tells_names)
        self.shape = shapes.of(self.value)
        # If values are nested too deeply, the compiled reader ends the process, and the other one raises
        # RecursionError.
        self.read: Callable[..., Any] = deep_reader if shapes.is_deep else fastavro.schemaless_reader


@lru_cache(maxsize=1024)
def parse_schema(schema: Schema) -> ParsedAvroSchema:
    """Parse a schema, once in a process; raises PipelineError."""
    try:
        return ParsedAvroSchema(schema)
    except (SchemaParseException, ValueError, KeyError, TypeError, RecursionError) as problem:
        description = f"{type(problem).__name__}: {problem}"
        raise PipelineError(
            f"the Avro schema {shorten_value(schema.text)} cannot be read ({description}): correct it"
        ) from problem


@lru_cache(maxsize=1024)
def _parse_writer(writer: Schema, reader: Schema) -> ParsedAvroSchema:
    """Parse the schema that values were written with, for values that are read with *reader*."""
    if writer == reader or not any(LOGICAL in text for text in (writer.text, *dict(writer.references).values())):
        return parse_schema(writer)
    parsed, wanted = ParsedAvroSchema(writer), parse_schema(reader)
    drop_logical_types(parsed.value, wanted.value, (parsed.named, wanted.named))
    return parsed


class AvroDecoder:
    """Decodes values with the schema *reader*, whatever version of it they were written with."""

    def __init__(self, reader: Schema) -> None:
        self._schema = reader
        self._reader = parse_schema(reader)
        self.type: DataType = self._reader.shape.type

    def type_of(self, writer: Schema) -> DataType:
        """Return the type of values written with *writer*; raises PipelineError."""
        return parse_schema(writer).shape.type

    def decode(self, payload: bytes, writer: Schema | None) -> Any:
        """Decode a value; raises DeadLetterError."""
        stream = io.BytesIO(payload)
        try:
            result = self._read(stream, writer)
        except fastavro.read.SchemaResolutionError as problem:
            raise DeadLetterError(
                "does-not-fit", f"its schema cannot be resolved with the reader's: {problem}"
            ) from None
        except Exception as problem:
            # Damaged bytes make a decoder fail in many ways: early ends, invalid UTF-8, branches that a union lacks.
            raise DeadLetterError("malformed", f"is no Avro of its schema: {_describe_problem(problem)}") from None
        if left := len(payload) - stream.tell():
            raise DeadLetterError("malformed", f"continues for {left} bytes after the value of its schema")
        return result

    def _read(self, stream: io.BytesIO, writer: Schema | None) -> Any:
        reader = self._reader
        written = _parse_writer(writer, self._schema) if writer is not None else reader
        wanted = reader.schema if written is not reader else None
        value = written.read(stream, written.schema, wanted, return_named_type=reader.tells_names)[VALUE]
        convert = reader.shape.convert
        return convert(value) if convert is not None and value is not None else value


def _describe_problem(problem: Exception) -> str:
    return f"{type(problem).__name__} {problem}".strip()
