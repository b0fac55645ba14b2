"""Avro: values decoded by the schema that they were written by and the one that they are read by."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException
from pyspark.sql.types import DataType

from spark_integration.errors import PipelineError
from spark_integration.validate.avro_reading import Cursor, Decode, Typed
from spark_integration.validate.avro_types import Types
from spark_integration.validate.dead import DeadLetterError, shown
from spark_integration.validate.registry import Schema


class Parsed:
    """A schema that fastavro has read, and all types that it names."""

    def __init__(self, schema: Schema) -> None:
        self.named: dict[str, Any] = {}
        for _, text in schema.references:
            fastavro.parse_schema(json.loads(text), named_schemas=self.named)
        self.schema: Any = fastavro.parse_schema(json.loads(schema.text), named_schemas=self.named)
        self.type: DataType = Types(self.named).of(self.schema)


@lru_cache(maxsize=1024)
def parsed(schema: Schema) -> Parsed:
    """Read a schema, once in a process; raises PipelineError."""
    try:
        return Parsed(schema)
    except (SchemaParseException, ValueError, KeyError, TypeError, RecursionError) as problem:
        told = f"{type(problem).__name__}: {problem}"
        raise PipelineError(f"the Avro schema {shown(schema.text)} cannot be read ({told}): correct it") from problem


@lru_cache(maxsize=1024)
def _decode_of(writer: Schema, reader: Schema) -> Decode:
    written, wanted = parsed(writer), parsed(reader)
    return Typed(written.named, wanted.named).of(written.schema, wanted.schema)


class Avro:
    """Decodes values by *reader*, whatever version of it they were written by."""

    def __init__(self, reader: Schema) -> None:
        self._reader = reader
        self._decodes: dict[Schema | None, Decode] = {None: _decode_of(reader, reader)}
        self.type: DataType = parsed(reader).type

    def type_of(self, writer: Schema) -> DataType:
        """Return the type of what *writer* writes; raises PipelineError."""
        return parsed(writer).type

    def decode(self, payload: bytes, writer: Schema | None) -> Any:
        """Decode a value; raises DeadLetterError."""
        cursor = Cursor(payload)
        try:
            value = self._decode_by(writer)(cursor)
        except DeadLetterError:
            raise
        except Exception as problem:
            # Whatever bytes do to a decoder: they end early, are no UTF-8, name no branch of a union, go too deep.
            raise DeadLetterError("malformed", f"is no Avro of its schema: {_told(problem)}") from None
        if left := len(payload) - cursor.at:
            raise DeadLetterError("malformed", f"goes on for {left} bytes behind the value of its schema")
        return value

    def _decode_by(self, writer: Schema | None) -> Decode:
        decode = self._decodes.get(writer)
        if decode is None:
            decode = self._decodes[writer] = _decode_of(writer, self._reader) if writer else self._decodes[None]
        return decode


def _told(problem: Exception) -> str:
    return f"{type(problem).__name__} {problem}".strip()
