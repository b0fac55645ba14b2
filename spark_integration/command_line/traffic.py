"""`kafkacompat spark traffic`."""

from __future__ import annotations

from typing import Any

from spark_integration.command_line.options import (
    SOURCE_GROUP,
    TARGET_GROUP,
    SessionOptions,
    option,
    session_options,
)
from spark_integration.command_line.running import check_before_start, pipeline_command, spark_session
from spark_integration.queries.summary import Summary
from spark_integration.traffic.settings import COLUMNS, TrafficSettings

EXAMPLE = """\
kafkacompat spark traffic --instances 1000 --brokers 20 --seconds 60 --output /tmp/traffic
"""


@pipeline_command("traffic", EXAMPLE)
@option(
    "--path",
    metavar="FILE",
    group=SOURCE_GROUP,
    help=f"Recorded traffic: CSV with the header {','.join(COLUMNS)}. [default: traffic is made]",
)
@option("--instances", type=int, default=1000, group=SOURCE_GROUP, help="Instances whose traffic is made.")
@option("--brokers", type=int, default=20, group=SOURCE_GROUP, help="Brokers of made traffic.")
@option("--seconds", type=int, default=60, group=SOURCE_GROUP, help="Length of made traffic.")
@option("--seed", type=int, default=1, group=SOURCE_GROUP, help="Another seed makes other traffic.")
@option("--interval-ms", type=int, default=1000, group=TARGET_GROUP, help="kafkacompat.traffic.interval.ms.")
@option("--output", metavar="DIR", group=TARGET_GROUP, help="Folder for plots, figures and the table.")
@session_options
def command(session: SessionOptions, **options: Any) -> Summary:
    """Compare the ways to divide the throughput of instances over brokers, by recorded or made traffic.

    The algorithms are those of kafkacompat's brokers: article, shared, and the static division by partitions.
    """
    settings = TrafficSettings(**options)
    settings.check()
    check_before_start(session, clusters={}, written={"--output": settings.output})
    from spark_integration.traffic.pipeline import simulate_traffic

    with spark_session("traffic", session) as spark:
        return simulate_traffic(spark, settings)
