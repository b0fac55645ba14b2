"""`kafkacompat spark audit`."""

from __future__ import annotations

from pathlib import Path

import click

from spark_integration.archive.settings import FORMATS
from spark_integration.audit.conditions import FIGURES, STAGES, parse_conditions
from spark_integration.audit.kinds import KINDS, PROBLEMS
from spark_integration.audit.settings import (
    NOTHING_TO_AUDIT,
    PLACES,
    SCOPES,
    TIME_UNITS_MS,
    TOPIC_SCOPE,
    AuditFields,
    AuditSettings,
)
from spark_integration.command_line.checks import check_written_file
from spark_integration.command_line.options import (
    OTHER_GROUP,
    SOURCE_GROUP,
    SessionOptions,
    collect_options,
    option,
    session_options,
    source_options,
)
from spark_integration.command_line.running import check_before_start, pipeline_command, spark_session
from spark_integration.errors import PipelineError
from spark_integration.queries.summary import Summary
from spark_integration.runtime.packages import packages_of_format

FAIL_ON = (
    f"End with exit code 1 if any of these is found, separated by commas: {', '.join(KINDS)}; problem (any of "
    f"{', '.join(PROBLEMS)}); latency:FIGURE>LIMIT or latency:STAGE:FIGURE>LIMIT, such as latency:p99>500ms "
    f"(figures: {', '.join(FIGURES)}; stages: {', '.join(STAGES)})."
)
EXAMPLE = """\
kafkacompat spark audit --bootstrap-server 127.0.0.1:9092 --subscribe orders --path /data/archive \\
    --producer-field header:producer --sequence-field '$.number' --fail-on problem --report audit.html
"""


def _collect_settings(values: dict[str, object]) -> AuditSettings:
    places = {name: values.pop(f"{name}_field") for name in ("producer", "sequence", "event_time")}
    numbers = {name: values.pop(name) for name in ("event_time_unit", "first_sequence")}
    rest = {name: values.pop(name) for name in ("sequence_scope", "limit", "examine")}
    return AuditSettings(AuditFields(**places, **numbers), **rest)  # type: ignore[arg-type]


audit_options = collect_options(
    "settings",
    [
        option("--producer-field", metavar="PLACE", help=f"Place of a record's producer: {PLACES}."),
        option("--sequence-field", metavar="PLACE", help="Place of the number that the producer gave the record."),
        option(
            "--event-time-field", metavar="PLACE", help="Place of the event's time. [default: the record's CreateTime]"
        ),
        option(
            "--event-time-unit",
            type=click.Choice(list(TIME_UNITS_MS)),
            default="ms",
            help="Unit of event times that are numbers since 1970.",
        ),
        option("--first-sequence", type=int, help="Number with which every producer begins, if it is known."),
        option(
            "--sequence-scope",
            type=click.Choice(list(SCOPES)),
            default=TOPIC_SCOPE,
            help="Whether a producer numbers its records by topic or by partition.",
        ),
        option("--limit", type=click.IntRange(1), default=20, help="Findings of a kind that are shown in detail."),
        option(
            "--examine",
            type=click.IntRange(0),
            default=100_000,
            help="Holes in the offsets that are looked up in the broker's log.",
        ),
    ],
    _collect_settings,
)


@pipeline_command("audit", EXAMPLE)
@source_options(stream=False, required=False)
@option(
    "--path",
    metavar="DIR",
    group=SOURCE_GROUP,
    help="Archive to judge, by itself or compared with its topics.",
)
@option(
    "--format",
    type=click.Choice(FORMATS),
    group=SOURCE_GROUP,
    help="Format that the archive must have; Delta and Iceberg need it.",
)
@audit_options
@option("--fail-on", default="", metavar="LIST", help=FAIL_ON)
@option(
    "--report", type=click.Path(dir_okay=False, path_type=Path), group=OTHER_GROUP, help="File of a report in HTML."
)
@option(
    "--counts",
    metavar="DIR",
    group=OTHER_GROUP,
    help="New folder of the counts by topic, producer and minute, in Parquet.",
)
@session_options
def command(
    session: SessionOptions,
    source: dict[str, str],
    settings: AuditSettings,
    path: str | None,
    format: str | None,
    fail_on: str,
    report: Path | None,
    counts: str | None,
) -> Summary:
    """Judge topics, an archive, or both: are all records there, once and in order, and how long did they take?

    Give --bootstrap-server and topics, or the --path of an archive, or both.

    Without --sequence-field the audit judges offsets alone: an offset without a record is explained by what the log
    holds there (a transaction's marker, an aborted record, compaction), or is reported as unexplained. With it the audit
    finds gaps, duplicates and inversions by producer and sequence. With --path it judges the archive in the same way,
    and compares it with its manifest and, record by record, with the topics.
    """
    conditions = parse_conditions(fail_on)
    if not source and path is None:
        raise PipelineError(NOTHING_TO_AUDIT)
    if report is not None:
        check_written_file("--report", report)
    check_before_start(
        session,
        clusters={"--bootstrap-server": source},
        written={"--counts": counts},
        archives={"--path": path},
    )
    from spark_integration.audit.pipeline import audit
    from spark_integration.queries.bars import show_job_bar

    with spark_session("audit", session, packages_of_format(format)) as spark, show_job_bar(spark, "audit"):
        return audit(
            spark,
            source,
            path=path,
            format=format,
            settings=settings,
            fail_on=conditions,
            report=report,
            counts=counts,
        )
