"""`kafkacompat spark redrive`."""

from __future__ import annotations

from spark_integration.command_line.options import (
    TARGET_GROUP,
    SessionOptions,
    cluster_options,
    option,
    session_options,
)
from spark_integration.command_line.running import check_before_start, pipeline_command, spark_session
from spark_integration.queries.summary import Summary
from spark_integration.redrive.settings import COLUMNS

EXAMPLE = """\
kafkacompat spark redrive --bootstrap-server 127.0.0.1:9092 --dead-letter-topic orders-dead \\
    --ledger /data/redriven --where "reason = 'malformed'" --repair "trim(cast(value as string))"
"""


@pipeline_command("redrive", EXAMPLE)
@cluster_options()
@option("--dead-letter-topic", required=True, help="Topic of dead letters that `validate` wrote.")
@option(
    "--ledger",
    required=True,
    metavar="DIR",
    help="Directory that records redriven letters, so that none is written twice.",
)
@option(
    "--where",
    default="true",
    metavar="SQL",
    help=f"Which letters are redriven, in SQL over {', '.join(COLUMNS)} (place and time are those of the origin).",
)
@option("--repair", metavar="SQL", help="New value of the records, in SQL over the same columns. [default: unchanged]")
@option(
    "--to",
    metavar="TOPIC",
    group=TARGET_GROUP,
    help="Topic that gets all the records. [default: the topic that each came from]",
)
@session_options
def command(
    session: SessionOptions,
    cluster: dict[str, str],
    dead_letter_topic: str,
    ledger: str,
    where: str,
    repair: str | None,
    to: str | None,
) -> Summary:
    """Put dead letters back where they came from, once the schema or the code is repaired.

    They go through `validate` again like every other record of their topic. Headers tell which dead letter each was.
    """
    check_before_start(session, clusters={"--bootstrap-server": cluster}, written={"--ledger": ledger})
    from spark_integration.redrive.pipeline import redrive

    with spark_session("redrive", session) as spark:
        return redrive(spark, cluster, dead_letter_topic, ledger, where, repair, to)
