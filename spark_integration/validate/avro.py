"""Avro: values decoded by fastavro under Avro's schema resolution."""

from __future__ import annotations

import io
import json
from functools import lru_cache
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException
from pyspark.sql.types import DataType

from spark_integration.errors import PipelineError
from spark_integration.validate.avro_types import Shapes, has_named_unions
from spark_integration.validate.dead import DeadLetterError, shown
from spark_integration.validate.registry import Schema


class Parsed:
    """A schema that fastavro has read, and all types that it names."""

    def __init__(self, schema: Schema) -> None:
        self.named: dict[str, Any] = {}
        for _, text in schema.references:
            fastavro.parse_schema(json.loads(text), named_schemas=self.named)
        self.schema: Any = fastavro.parse_schema(json.loads(schema.text), named_schemas=self.named)
        self.shape = Shapes(self.named, has_named_unions(self.schema)).of(self.schema)


@lru_cache(maxsize=1024)
def parsed(schema: Schema) -> Parsed:
    """Read a schema, once in a process; raises PipelineError."""
    try:
        return Parsed(schema)
    except (SchemaParseException, ValueError, KeyError, TypeError, RecursionError) as problem:
        told = f"{type(problem).__name__}: {problem}"
        raise PipelineError(f"the Avro schema {shown(schema.text)} cannot be read ({told}): correct it") from problem


class Avro:
    """Decodes values by *reader*, whatever version of it they were written by."""

    def __init__(self, reader: Schema) -> None:
        self._reader = parsed(reader)
        self._named = has_named_unions(self._reader.schema)
        self.type: DataType = self._reader.shape.type

    def type_of(self, writer: Schema) -> DataType:
        """Return the type of what *writer* writes; raises PipelineError."""
        return parsed(writer).shape.type

    def decode(self, payload: bytes, writer: Schema | None) -> Any:
        """Decode a value; raises DeadLetterError."""
        written_by = parsed(writer).schema if writer is not None else self._reader.schema
        stream = io.BytesIO(payload)
        try:
            value = fastavro.schemaless_reader(stream, written_by, self._reader.schema, return_named_type=self._named)
            convert = self._reader.shape.convert
            result = convert(value) if convert is not None and value is not None else value
        except fastavro.read.SchemaResolutionError as problem:
            raise DeadLetterError(
                "does-not-fit", f"its schema cannot be read by the one asked for: {problem}"
            ) from None
        except Exception as problem:
            # Whatever bytes do to a decoder: they end early, are no UTF-8, name no branch of a union.
            raise DeadLetterError("malformed", f"is no Avro of its schema: {_told(problem)}") from None
        if left := len(payload) - stream.tell():
            raise DeadLetterError("malformed", f"goes on for {left} bytes behind the value of its schema")
        return result


def _told(problem: Exception) -> str:
    return f"{type(problem).__name__} {problem}".strip()
