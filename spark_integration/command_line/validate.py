"""`kafkacompat spark validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spark_integration.command_line.options import (
    TARGET_GROUP,
    SessionOptions,
    collect_options,
    option,
    session_options,
    source_options,
    stream_options,
)
from spark_integration.command_line.running import check_before_start, pipeline_command, spark_session
from spark_integration.errors import PipelineError
from spark_integration.queries.settings import StreamOptions
from spark_integration.queries.summary import Summary
from spark_integration.topics.client_settings import read_properties
from spark_integration.validate.registry import RegistryOptions, make_registry_options
from spark_integration.validate.settings import (
    CONFLUENT,
    KINDS,
    PLAIN,
    SAMPLE,
    TABLE_FORMATS,
    SchemaOptions,
    ValidateOutputs,
)

EXAMPLE = """\
kafkacompat spark validate --bootstrap-server 127.0.0.1:9092 --subscribe orders --schema order.avsc \\
    --value-format avro --path /data/orders --dead-letter-topic orders-dead \\
    --checkpointLocation /data/orders-checkpoint
"""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _make_registry(url: str | None, config: Path | None) -> RegistryOptions | None:
    if url is None:
        if config is not None:
            raise PipelineError(f"{config} has properties of a schema registry: give --schema-registry as well")
        return None
    return make_registry_options(url, read_properties(config) if config else {})


def _collect_schemas(values: dict[str, Any]) -> SchemaOptions:
    registry = _make_registry(values.pop("schema_registry"), values.pop("schema_registry_config"))
    names = ("value_format", "schema", "message", "subject", "wire_format", "infer")
    return SchemaOptions(registry=registry, **{name: values.pop(name) for name in names})


schema_options = collect_options(
    "schemas",
    [
        option("--value-format", type=click.Choice(list(KINDS)), default="json", help="Format of the values."),
        option(
            "--schema",
            type=_FILE,
            help="File of the schema: .avsc, .proto or descriptors, JSON Schema, or Spark's types as DDL or JSON.",
        ),
        option("--message", help="Protobuf message of the values. [default: the first one of the schema]"),
        option("--schema-registry", metavar="URL", help="Schema registry, which knows the schema of each id."),
        option(
            "--schema-registry-config",
            type=_FILE,
            help="File of the registry's properties: basic.auth.user.info, bearer.auth.token, ssl.ca.location, "
            "ssl.certificate.location.",
        ),
        option("--subject", help="Subject of the registry whose newest schema is used. [default: TOPIC-value]"),
        option(
            "--wire-format",
            type=click.Choice([CONFLUENT, PLAIN]),
            help="Whether values begin with the id of a schema. [default: confluent with a registry, else plain]",
        ),
        option(
            "--infer",
            type=click.IntRange(1),
            default=SAMPLE,
            help="Number of records from which the types of JSON are inferred if no schema is given.",
        ),
    ],
    _collect_schemas,
)


@pipeline_command("validate", EXAMPLE)
@source_options()
@option("--dead-letter-topic", required=True, help="Topic of records that do not fit the schema.")
@schema_options
@option("--path", metavar="DIR", group=TARGET_GROUP, help="Folder or table of good records.")
@option(
    "--format",
    "table_format",
    type=click.Choice(TABLE_FORMATS),
    default="parquet",
    group=TARGET_GROUP,
    help="Format of --path.",
)
@option("--topic", group=TARGET_GROUP, help="Topic of good records, as JSON.")
@option(
    "--on-drift",
    type=click.Choice(["warn", "fail"]),
    default="warn",
    help="If fields are new, missing or changed: report them, or stop the query before such records are written.",
)
@stream_options
@session_options
def command(
    session: SessionOptions,
    source: dict[str, str],
    schemas: SchemaOptions,
    stream: StreamOptions,
    path: str | None,
    table_format: str,
    topic: str | None,
    dead_letter_topic: str,
    on_drift: str,
) -> Summary:
    """Check records against a schema and write them as typed columns.

    Values are JSON, Avro or Protobuf; their schema is in a file or in a schema registry (the id at the beginning of each
    value). A record that does not fit goes into --dead-letter-topic unchanged, with the reason and its origin in headers;
    `kafkacompat spark redrive` puts it back.
    """
    outputs = ValidateOutputs(dead_letter_topic, path, table_format, topic)
    outputs.check()
    check_before_start(
        session,
        clusters={"--bootstrap-server": source},
        written={"--path": path, "--checkpointLocation": stream.checkpoint_location},
    )
    from spark_integration.validate.pipeline import validate

    packages = ("delta",) if path is not None and table_format == "delta" else ()
    with spark_session("validate", session, packages) as spark:
        return validate(spark, source, schemas, outputs, stream, on_drift)
