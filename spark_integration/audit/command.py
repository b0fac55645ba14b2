"""`kafkacompat spark audit`."""

from __future__ import annotations

from pathlib import Path

import click

from spark_integration.audit.conditions import FIGURES, STAGES, conditions
from spark_integration.audit.fields import UNITS, Fields
from spark_integration.audit.findings import AuditSummary
from spark_integration.audit.kinds import KINDS, PROBLEMS
from spark_integration.audit.pipeline import audit
from spark_integration.audit.sequences import SCOPES, TOPIC_SCOPE
from spark_integration.audit.work import Judging
from spark_integration.command import pipeline, spark_session
from spark_integration.console import job_bar
from spark_integration.options import SessionOptions, grouped, session_options, source_options
from spark_integration.packages import of_format

PLACE = "$.path (JSON in the value), key, key:$.path or header:NAME"
FAIL_ON = (
    f"Exit with 1 if any of these is found, separated by commas: {', '.join(KINDS)}; problem (any of {', '.join(PROBLEMS)}); "
    f"latency:FIGURE>LIMIT or latency:STAGE:FIGURE>LIMIT, as latency:p99>500ms (figures: {', '.join(FIGURES)}; "
    f"stages: {', '.join(STAGES)})."
)


def _judging(values: dict[str, object]) -> Judging:
    taken = {name: values.pop(f"{name}_field") for name in ("producer", "sequence", "event_time")}
    units = {name: values.pop(name) for name in ("event_time_unit", "first_sequence")}
    rest = {name: values.pop(name) for name in ("sequence_scope", "limit", "examine")}
    return Judging(Fields(**taken, **units), **rest)  # type: ignore[arg-type]


judging_options = grouped(
    "judging",
    [
        click.option("--producer-field", metavar="PLACE", help=f"Where a record's producer is: {PLACE}."),
        click.option("--sequence-field", metavar="PLACE", help="Where the number is that its producer gave it."),
        click.option("--event-time-field", metavar="PLACE", help="When it happened. [default: its CreateTime]"),
        click.option("--event-time-unit", type=click.Choice(list(UNITS)), default="ms", help="Of numbers since 1970."),
        click.option("--first-sequence", type=int, help="What every producer begins with, where that is known."),
        click.option(
            "--sequence-scope",
            type=click.Choice(list(SCOPES)),
            default=TOPIC_SCOPE,
            help="Whether a producer counts by topic or by partition.",
        ),
        click.option("--limit", type=click.IntRange(1), default=20, help="Findings of a kind told in detail."),
        click.option(
            "--examine", type=click.IntRange(0), default=100_000, help="Holes to look at in the broker's log."
        ),
    ],
    _judging,
)


@pipeline("audit")
@session_options
@source_options(stream=False, required=False)
@judging_options
@click.option("--path", metavar="DIR", help="An archive to judge, beside its topics where these are given as well.")
@click.option("--format", help="Its format, if it is to be checked: parquet, delta or iceberg.")
@click.option("--fail-on", default="", metavar="LIST", help=FAIL_ON)
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write an HTML report to this file.")
@click.option("--counts", metavar="DIR", help="Write all counts by topic, producer and minute there, in Parquet.")
def command(
    session: SessionOptions,
    source: dict[str, str],
    judging: Judging,
    path: str | None,
    format: str | None,
    fail_on: str,
    report: Path | None,
    counts: str | None,
) -> AuditSummary:
    """Judge topics, an archive, or both: is all there, once and in order, and how long did it take?

    Without --sequence-field offsets alone are judged: each one without a record is explained by what the log holds there (a
    transaction's marker, an aborted record, compaction) or told as unexplained. With it gaps, duplicates and inversions
    are told by producer and sequence. With --path the archive is judged in the same way, compared with its manifest, and
    record by record with the topics.
    """
    wanted = conditions(fail_on)
    with spark_session("audit", session, of_format(format)) as spark, job_bar(spark, "audit"):
        return audit(
            spark,
            source,
            path=path,
            format=format,
            judging=judging,
            fail_on=wanted,
            report=report,
            counts=counts,
        )
