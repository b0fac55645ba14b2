"""`kafkacompat spark NAME`: the pipelines over Spark, each imported only when it is called."""

from __future__ import annotations

import importlib
import importlib.util

import click

# Each is spark_integration.NAME, which has a click command of the name `command`.
PIPELINES = {
    "archive": "Topics into Parquet, Delta or Iceberg, exactly once.",
    "audit": "Completeness and latency of topics and archives.",
    "mirror": "Topics from one cluster into another.",
    "translate": "A consumer group's offsets into those of the mirror.",
    "replay": "An archive back into topics.",
    "rollup": "Windows over events into a compacted topic and a table.",
    "validate": "Records into typed columns, and what does not fit into a topic of its own.",
    "redrive": "Put repaired dead letters back.",
    "prepare": "Fetch what Spark needs, and let it start sooner from now on.",
}


class Pipelines(click.Group):
    """Knows the pipelines' names and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(PIPELINES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in PIPELINES:
            return None
        if importlib.util.find_spec("pyspark") is None:
            raise click.ClickException("PySpark is not installed: pip install 'kafkacompat[spark]'")
        command: click.Command = importlib.import_module(f"spark_integration.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names without importing what they stand for, which would take seconds."""
        with formatter.section("Pipelines"):
            formatter.write_dl(list(PIPELINES.items()))


@click.command(cls=Pipelines)
def spark() -> None:
    """Run a pipeline over Apache Spark's Kafka source.

    By default on this machine (--master local[*]); with --master on any Spark cluster. Against any Kafka.
    """
