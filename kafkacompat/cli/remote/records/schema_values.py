"""Keys and values decoded by the schemas of a registry: Avro, Protobuf, and JSON with a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.cli.remote.records.decoding import Decoded, Failures, load_json
from kafkacompat.cli.remote.records.failures import OptionError
from kafkacompat.config.java_properties import parse_properties
from spark_integration.errors import PipelineError
from spark_integration.validate.dead import REASONS, DeadLetterError
from spark_integration.validate.framing import split_frame
from spark_integration.validate.registry import (
    RegistryError,
    Schema,
    SchemaRegistry,
    UnknownSchemaError,
    make_registry_options,
)

if TYPE_CHECKING:
    from kafkacompat.cli.remote.records.avro_values import ReadValue

TRIES = 2
MOST_SCHEMAS = 1000
"""Schemas and unknown ids that are remembered at a time."""


def open_registry(url: str, config: Path | None) -> SchemaRegistry:
    """Return the client of a registry; raises OptionError for an address or properties that cannot be used."""
    try:
        # As java.util.Properties reads it.
        properties = parse_properties(config.read_text(encoding="latin-1")) if config is not None else {}
        return SchemaRegistry(make_registry_options(url, properties), TRIES)
    except (PipelineError, OSError, ValueError) as problem:
        raise OptionError(str(problem)) from None


class RegistryDecoder:
    """Decodes keys or values that begin with the id of a schema (Confluent's wire format)."""

    def __init__(self, registry: SchemaRegistry, failures: Failures) -> None:
        self._registry = registry
        self._failures = failures
        self._find_reader = lru_cache(MOST_SCHEMAS)(self._make_reader)

    def decode(self, content: bytes) -> Decoded:
        """Decode a key or value; raises RemoteError if the registry does not answer."""
        try:
            schema_id, payload = split_frame(content)
        except DeadLetterError as problem:
            return self._fail(content, REASONS[problem.reason])
        read = self._find_reader(schema_id)
        if isinstance(read, str):
            return self._fail(content, read)
        try:
            return Decoded(content, True, read(payload), schema_id)
        except (RemoteError, MemoryError):
            raise
        except Exception:  # damaged bytes make the libraries fail in many ways
            return self._fail(content, f"it does not fit its schema, of id {schema_id}")

    def _fail(self, content: bytes, reason: str) -> Decoded:
        self._failures.count(reason)
        return Decoded(content)

    def _make_reader(self, schema_id: int) -> ReadValue | str:
        """Return the reader of the values of a schema, or the reason why there is none; raises RemoteError."""
        try:
            schema = self._request_schema(schema_id)
            return _READERS[schema.kind](schema)
        except UnknownSchemaError:
            return f"the registry {self._registry.url} has no schema of the id {schema_id}"
        except PipelineError as problem:
            return str(problem)
        except KeyError as problem:
            return f"the schema of id {schema_id} is of the unknown kind {problem}"

    def _request_schema(self, schema_id: int) -> Schema:
        try:
            return self._registry.by_id(schema_id)
        except RegistryError as problem:
            raise RemoteError(str(problem)) from None
        except (KeyError, TypeError, AttributeError):
            raise RemoteError(
                f"{self._registry.url} does not answer as a schema registry does: check --schema-registry"
            ) from None


def _make_avro_reader(schema: Schema) -> ReadValue:
    from kafkacompat.cli.remote.records.avro_values import make_avro_reader

    return make_avro_reader(schema)


def _make_protobuf_reader(schema: Schema) -> ReadValue:
    from kafkacompat.cli.remote.records.protobuf_values import make_protobuf_reader

    return make_protobuf_reader(schema)


def _make_json_reader(_: Schema) -> ReadValue:
    return load_json


_READERS: Mapping[str, Callable[[Schema], ReadValue]] = {
    "AVRO": _make_avro_reader,
    "PROTOBUF": _make_protobuf_reader,
    "JSON": _make_json_reader,
}
