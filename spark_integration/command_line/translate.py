"""`kafkacompat spark translate`."""

from __future__ import annotations

from spark_integration.command_line.options import (
    OTHER_GROUP,
    TARGET_GROUP,
    SessionOptions,
    cluster_options,
    option,
    session_options,
)
from spark_integration.command_line.running import check_before_start, pipeline_command, spark_session
from spark_integration.mirror.settings import OFFSET_MAP
from spark_integration.queries.summary import Summary

EXAMPLE = """\
kafkacompat spark translate --bootstrap-server 127.0.0.1:9092 --target-bootstrap-server 127.0.0.1:9093 \\
    --group billing
"""


@pipeline_command("translate", EXAMPLE)
@cluster_options("source")
@cluster_options("target", "target-")
@option("--group", required=True, help="Consumer group that moves to the mirror.")
@option(
    "--offset-map", default=OFFSET_MAP, group=TARGET_GROUP, help="Topic of the target in which the mirror maps offsets."
)
@option("--dry-run", is_flag=True, group=OTHER_GROUP, help="Report the offsets, and commit nothing.")
@session_options
def command(
    session: SessionOptions,
    source: dict[str, str],
    target: dict[str, str],
    group: str,
    offset_map: str,
    dry_run: bool,
) -> Summary:
    """Let a consumer group continue in the mirror of a cluster.

    The offsets that the group has committed in the source are translated and committed in the target, where the group
    must have no members.
    """
    check_before_start(session, clusters={"--bootstrap-server": source, "--target-bootstrap-server": target})
    from spark_integration.mirror.translation import translate

    with spark_session("translate", session) as spark:
        return translate(spark, source, target, group, offset_map=offset_map, commit=not dry_run)
