"""The schema by which values are read: that of a file, the registry's newest, or one inferred from a sample."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType, _parse_datatype_string

from spark_integration.errors import PipelineError, explain_failure
from spark_integration.topics.source import read_batch
from spark_integration.validate.dead import DeadLetterError, shorten_value
from spark_integration.validate.formats import DecodingPlan
from spark_integration.validate.framing import split_frame
from spark_integration.validate.protoc import compile_file
from spark_integration.validate.registry import RegistryOptions, Schema, SchemaRegistry, UnknownSchemaError
from spark_integration.validate.settings import CONFLUENT, DESCRIPTORS, KINDS, PLAIN, SPARK, SchemaOptions

DRIVER_TRIES = 2
# Options that name a stream's first records; a sample is taken from the records that exist.
BEGINNINGS = ("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")


@dataclass(frozen=True)
class SchemaChoice:
    """How values are read, and the schemas whose ids were known when this was decided."""

    plan: DecodingPlan
    known: Mapping[int, Schema]
    inferred: bool = False


def choose_schema(
    spark: SparkSession, source: Mapping[str, str], topics: Sequence[str], options: SchemaOptions
) -> SchemaChoice:
    """Choose the schema to read by; raises PipelineError."""
    if options.schema is None and options.registry is None:
        return _choose_inferred(spark, source, options)
    subject = _subject_name(topics, options) if options.registry else None
    known = _read_known_schemas(options.registry, subject, must_be=options.schema is None) if options.registry else {}
    if options.schema is not None:
        return SchemaChoice(_make_plan(options, read_schema_file(options.schema, options.value_format)), known)
    assert options.registry is not None
    assert subject is not None
    _, reader = SchemaRegistry(options.registry, DRIVER_TRIES).latest(subject)
    if reader.kind != KINDS[options.value_format]:
        named = {kind: word for word, kind in KINDS.items()}.get(reader.kind, reader.kind)
        raise PipelineError(f"the subject {subject} holds {reader.kind} schemas: give --value-format {named}")
    return SchemaChoice(_make_plan(options, reader), known)


def _make_plan(options: SchemaOptions, reader: Schema) -> DecodingPlan:
    wire_format = options.wire_format or (CONFLUENT if options.registry else PLAIN)
    return DecodingPlan(options.value_format, wire_format, reader, options.message, options.registry)


def _subject_name(topics: Sequence[str], options: SchemaOptions) -> str | None:
    if options.subject is not None:
        return options.subject
    if len(topics) == 1:
        return f"{topics[0]}-value"
    if options.schema is None:
        raise PipelineError(
            f"{', '.join(topics)} have different subjects: give --subject, or validate one topic at a time"
        )
    return None


def _read_known_schemas(options: RegistryOptions, subject: str | None, must_be: bool) -> dict[int, Schema]:
    if subject is None:
        return {}
    try:
        return SchemaRegistry(options, DRIVER_TRIES).versions(subject)
    except UnknownSchemaError as problem:
        if not must_be:
            return {}
        raise PipelineError(
            f"the schema registry {options.url} has no subject {subject}: register a schema, or name another by --subject"
        ) from problem


def read_schema_file(path: Path, value_format: str) -> Schema:
    """Read a schema: .avsc; .proto or a FileDescriptorSet; JSON Schema, or Spark's types as DDL or as JSON."""
    if value_format == "protobuf":
        descriptors = compile_file(path) if path.suffix == ".proto" else path.read_bytes()
        return Schema(DESCRIPTORS, descriptors.decode("latin-1"))
    text = _read_text(path)
    if value_format == "avro":
        return Schema("AVRO", text)
    return _parse_json_schema(path, text) if text.lstrip().startswith("{") else Schema(SPARK, _parse_ddl(text).json())


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except ValueError as problem:
        raise PipelineError(f"{path} is no text in UTF-8: give a schema") from problem


def _parse_json_schema(path: Path, text: str) -> Schema:
    try:
        document = json.loads(text)
    except ValueError as problem:
        raise PipelineError(f"{path} is no JSON ({problem}): correct it") from problem
    return Schema(SPARK if document.get("type") == "struct" else "JSON", text)


def _parse_ddl(text: str) -> Any:
    try:
        return _parse_datatype_string(" ".join(text.split()))
    except Exception as problem:
        raise PipelineError(
            f"{shorten_value(text)} is no schema ({explain_failure(problem)}): "
            "give Spark's DDL, such as 'id bigint, name string'"
        ) from problem


def _choose_inferred(spark: SparkSession, source: Mapping[str, str], options: SchemaOptions) -> SchemaChoice:
    if options.value_format != "json":
        raise PipelineError(
            f"{options.value_format} values do not tell their types: give --schema, or --schema-registry"
        )
    inferred = infer_schema(spark, source, options.infer, framed=options.wire_format == CONFLUENT)
    return SchemaChoice(_make_plan(options, Schema(SPARK, inferred.json())), {}, inferred=True)


def infer_schema(spark: SparkSession, source: Mapping[str, str], count: int, framed: bool = False) -> StructType:
    """Infer the type of the JSON objects among the first *count* values by Spark's own rules; raises PipelineError.

    *framed*: values begin with the header of a schema registry's serializers.
    """
    sample = {name: value for name, value in source.items() if name not in BEGINNINGS}
    values = read_batch(spark, {**sample, "startingOffsets": "earliest"}).where(sql.col("value").isNotNull())
    sampled = [bytes(row.value) for row in values.select("value").limit(count).collect()]
    texts = [text.decode("utf-8", "replace") for text in (_split_payloads(sampled) if framed else sampled)]
    rows = spark.sparkContext.parallelize(texts, 1)
    inferred: StructType = spark.read.option("mode", "DROPMALFORMED").json(rows).schema
    if not inferred.fields:
        raise PipelineError(f"no JSON object is among the first {count} records: give --schema")
    return inferred


def _split_payloads(values: Sequence[bytes]) -> Iterator[bytes]:
    for value in values:
        with suppress(DeadLetterError):
            yield split_frame(value).payload
