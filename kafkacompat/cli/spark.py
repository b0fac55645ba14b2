"""`kafkacompat spark NAME`: the pipelines over Spark, each imported only when it is called."""

from __future__ import annotations

import importlib

import click

# Each name is that of a module in spark_integration.command_line, which has a click command named `command`.
PIPELINES = {
    "archive": "Topics into Parquet, Delta or Iceberg, exactly once.",
    "audit": "Completeness, order and latency of topics and archives.",
    "mirror": "Topics of one cluster into another.",
    "translate": "A consumer group's offsets into those of a mirror.",
    "replay": "An archive back into topics.",
    "rollup": "JSON events by windows of time, into a compacted topic and a table.",
    "validate": "Records into typed columns, and records that do not fit into a topic of their own.",
    "redrive": "Repaired dead letters back into their topics.",
    "traffic": "How the throughput of instances is divided over brokers, simulated.",
    "prepare": "Fetch what Spark needs, so that it starts faster from now on.",
}


class Pipelines(click.Group):
    """Knows the names of the pipelines, and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the pipelines."""
        return list(PIPELINES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name; its `--help` works without PySpark."""
        if cmd_name not in PIPELINES:
            return None
        command: click.Command = importlib.import_module(f"spark_integration.command_line.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names without importing the commands."""
        with formatter.section("Pipelines"):
            formatter.write_dl(list(PIPELINES.items()))


@click.command(cls=Pipelines)
def spark() -> None:
    """Run a pipeline over Apache Spark's Kafka source.

    Spark runs on this machine (--master local[*]) or, with another --master, on any Spark cluster. The pipelines work
    with any Kafka broker.
    """
