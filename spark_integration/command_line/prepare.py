"""`kafkacompat spark prepare`."""

from __future__ import annotations

import click

from spark_integration.command_line.options import option
from spark_integration.command_line.running import pipeline_command
from spark_integration.queries.console import say
from spark_integration.queries.summary import Summary
from spark_integration.runtime.packages import PACKAGES

EXAMPLE = "kafkacompat spark prepare --package delta\n"


@pipeline_command("prepare", EXAMPLE)
@option(
    "--package",
    "packages",
    type=click.Choice([name for name in PACKAGES if name != "kafka"]),
    multiple=True,
    help="Package that sessions have beside the Kafka source; repeat the option for several.",
)
def command(packages: tuple[str, ...]) -> Summary:
    """Fetch the jars that fit the installed PySpark, and keep Spark's classes, so that Spark starts faster from now on.

    Run it once when an image is built, or on a machine on which Spark starts often. It takes about a minute, and 200 MB
    for each set of packages.
    """
    from spark_integration.prepare.pipeline import prepare

    return prepare(packages, say)
