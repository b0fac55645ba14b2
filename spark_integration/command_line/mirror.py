"""`kafkacompat spark mirror`."""

from __future__ import annotations

from spark_integration.command_line.options import (
    TARGET_GROUP,
    SessionOptions,
    cluster_options,
    names_options,
    option,
    session_options,
    source_options,
    stream_options,
)
from spark_integration.command_line.running import check_before_start, pipeline_command, spark_session
from spark_integration.mirror.settings import OFFSET_MAP, SPLITTING
from spark_integration.queries.settings import StreamOptions
from spark_integration.queries.summary import Summary
from spark_integration.topics.names import TargetNames

EXAMPLE = """\
kafkacompat spark mirror --bootstrap-server 127.0.0.1:9092 --subscribe orders,payments \\
    --target-bootstrap-server 127.0.0.1:9093 --checkpointLocation /data/mirror-checkpoint
"""


@pipeline_command("mirror", EXAMPLE)
@source_options(without=SPLITTING)
@cluster_options("target", "target-")
@names_options
@option(
    "--offset-map",
    default=OFFSET_MAP,
    group=TARGET_GROUP,
    help="Topic of the target that maps offsets; a missing one is created.",
)
@stream_options
@session_options
def command(
    session: SessionOptions,
    source: dict[str, str],
    target: dict[str, str],
    names: TargetNames,
    stream: StreamOptions,
    offset_map: str,
) -> Summary:
    """Mirror topics into another cluster, with their partitions and configs.

    Records keep partition, order, key, value and headers; further headers tell where each came from. New topics and
    partitions are picked up. A run that was stopped continues when the same command is given again: records that the
    target has are not written again.
    """
    check_before_start(
        session,
        clusters={"--bootstrap-server": source, "--target-bootstrap-server": target},
        written={"--checkpointLocation": stream.checkpoint_location},
    )
    from spark_integration.mirror.pipeline import mirror

    with spark_session("mirror", session) as spark:
        return mirror(spark, source, target, stream=stream, names=names, offset_map=offset_map)
