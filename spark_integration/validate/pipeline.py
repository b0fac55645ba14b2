"""The pipeline `validate`: records into typed columns, and records that do not fit into a topic of dead letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_integration.archive.reading import require_format
from spark_integration.errors import PipelineError
from spark_integration.queries.console import say
from spark_integration.queries.query import run_query
from spark_integration.queries.settings import StreamOptions
from spark_integration.queries.summary import Summary
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.source import find_source_topics, read_stream
from spark_integration.validate.batches import ValidateBatchWriter
from spark_integration.validate.choice import SchemaChoice, choose_schema
from spark_integration.validate.formats import DecodingPlan, make_format
from spark_integration.validate.outputs import producer_options
from spark_integration.validate.registry import Schema
from spark_integration.validate.settings import SPARK, SchemaOptions, ValidateOutputs
from spark_integration.validate.state import ValidateState


@dataclass(frozen=True)
class ValidateSummary(Summary):
    """Of this run: the records, those that fit, those that do not by reason, and differences from the schema."""

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
    outputs: ValidateOutputs,
    stream: StreamOptions,
    on_drift: str = "warn",
) -> ValidateSummary:
    """Read the values of *source* by a schema; write good records and dead letters as *outputs* says.

    *on_drift* is ``warn`` or ``fail`` (stop before a batch with a record that differs from the schema is written). The
    checkpoint keeps an inferred schema for later runs. Raises PipelineError; docs/SPARK.md says what is promised.
    """
    with Cluster(spark, source) as cluster:
        _check_outputs(spark, cluster, source, outputs)
        state = ValidateState(spark, stream.checkpoint_location)
        choice = _choose_or_reuse_schema(spark, source, find_source_topics(cluster, source), schemas, state)
        say(f"values become {make_format(choice.plan).type.simpleString()}")
        known = spark.sparkContext.broadcast(choice.known)
        batches = ValidateBatchWriter(
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


def _check_outputs(spark: SparkSession, cluster: Cluster, source: Mapping[str, str], outputs: ValidateOutputs) -> None:
    outputs.check()
    if outputs.path is not None:
        require_format(spark, outputs.format)
    cluster.require(outputs.topics)
    read = find_source_topics(cluster, source)
    if circle := [name for name in outputs.topics if name in read]:
        raise PipelineError(f"{circle[0]} is read and would be written to: give another topic")


def _choose_or_reuse_schema(
    spark: SparkSession, source: Mapping[str, str], topics: Sequence[str], schemas: SchemaOptions, state: ValidateState
) -> SchemaChoice:
    kept = state.read_inferred() if schemas.schema is None and schemas.registry is None else None
    if kept is not None:
        plan = DecodingPlan(schemas.value_format, schemas.wire_format or "plain", Schema(SPARK, kept))
        return SchemaChoice(plan, {})
    choice = choose_schema(spark, source, topics, schemas)
    if choice.inferred:
        path = state.keep_inferred_schema(choice.plan.reader.text)
        say(f"inferred from a sample, and kept for later runs in {path}")
    return choice
