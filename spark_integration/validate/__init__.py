"""`kafkacompat spark validate`: records into typed columns, and what does not fit the schema into a topic of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import click
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_integration.archive.reading import require_format
from spark_integration.cluster import Cluster
from spark_integration.command import pipeline, spark_session
from spark_integration.console import Summary, console
from spark_integration.errors import PipelineError
from spark_integration.options import SessionOptions, session_options, source_options, stream_options
from spark_integration.query import StreamOptions, run_query
from spark_integration.source import read_stream, topics_of
from spark_integration.validate.batches import Batches
from spark_integration.validate.choice import Choice, SchemaOptions, choose, schema_options
from spark_integration.validate.formats import SPARK, Plan, format_of
from spark_integration.validate.outputs import FORMATS, Outputs, producer_options
from spark_integration.validate.registry import Schema
from spark_integration.validate.state import State


@dataclass(frozen=True)
class ValidateSummary(Summary):
    """Of this run: records read, those that fit and those that do not, by reason, and what differs from the schema."""

    records: int
    good: int
    dead_letters: int
    batches: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    drift: Mapping[str, int] = field(default_factory=dict)


def validate(
    spark: SparkSession,
    source: Mapping[str, str],
    schemas: SchemaOptions,
    outputs: Outputs,
    stream: StreamOptions,
    on_drift: str = "warn",
) -> ValidateSummary:
    """Read what *source* says by a schema; write good records and dead letters as *outputs* says.

    *on_drift* is ``warn`` or ``fail`` (stop before a batch with a record that differs from the schema is written). The
    checkpoint keeps an inferred schema for later runs. Raises PipelineError; docs/SPARK.md tells what is promised.
    """
    with Cluster(spark, source) as cluster:
        _check(spark, cluster, source, outputs)
        state = State(spark, stream.checkpoint_location)
        choice = _choice(spark, source, topics_of(cluster, source), schemas, state)
        say = console().print
        say(f"values become {format_of(choice.plan).type.simpleString()}", soft_wrap=True)
        known = spark.sparkContext.broadcast(choice.known)
        batches = Batches(
            choice.plan, known, outputs, cluster, producer_options(source), state, on_drift == "fail", say
        )
        writer = read_stream(spark, source).writeStream.foreachBatch(batches)
        try:
            tally = run_query(spark, writer, stream, name="validate", cluster=cluster)
        except StreamingQueryException as problem:
            raise batches.failure or problem from None
    total = batches.total
    return ValidateSummary(
        total.rows, total.good, total.dead.total(), tally.batches, dict(total.dead), dict(total.drift)
    )


def _check(spark: SparkSession, cluster: Cluster, source: Mapping[str, str], outputs: Outputs) -> None:
    if outputs.path is None and outputs.topic is None:
        raise PipelineError("good records would go nowhere: give --path, --topic or both")
    if outputs.path is not None:
        require_format(spark, outputs.format)
    cluster.require(outputs.topics)
    read = topics_of(cluster, source)
    if circle := [name for name in outputs.topics if name in read]:
        raise PipelineError(f"{circle[0]} is read and would be written to: give another topic")
    if outputs.topic == outputs.dead_letter_topic:
        raise PipelineError(f"good records and dead letters would both go to {outputs.topic}: give two topics")


def _choice(
    spark: SparkSession, source: Mapping[str, str], topics: Sequence[str], schemas: SchemaOptions, state: State
) -> Choice:
    kept = state.inferred() if schemas.schema is None and schemas.registry is None else None
    if kept is not None:
        plan = Plan(schemas.value_format, schemas.wire_format or "plain", Schema(SPARK, kept))
        return Choice(plan, {})
    choice = choose(spark, source, topics, schemas)
    if choice.inferred:
        path = state.keep_inferred(choice.plan.reader.text)
        console().print(f"inferred from a sample, and kept for later runs in {path}", soft_wrap=True)
    return choice


@pipeline("validate")
@session_options
@source_options()
@schema_options
@stream_options
@click.option("--path", help="The folder or table of good records.")
@click.option("--format", "table_format", type=click.Choice(FORMATS), default="parquet", help="What it is.")
@click.option("--topic", help="The topic of good records, as JSON.")
@click.option("--dead-letter-topic", required=True, help="The topic of records that do not fit the schema.")
@click.option(
    "--on-drift",
    type=click.Choice(["warn", "fail"]),
    default="warn",
    help="Whether fields that are new, missing or changed are told, or stop the query before they are written.",
)
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
) -> ValidateSummary:
    """Check records against a schema and write them as typed columns.

    Values are JSON, Avro or Protobuf, by a schema file or a schema registry (the id at the beginning of each value). What
    does not fit goes into --dead-letter-topic as it was, with the reason and its origin in headers; `kafkacompat spark
    redrive` puts it back.
    """
    outputs = Outputs(dead_letter_topic, path, table_format, topic)
    packages = ("delta",) if path is not None and table_format == "delta" else ()
    with spark_session("validate", session, packages) as spark:
        return validate(spark, source, schemas, outputs, stream, on_drift)
