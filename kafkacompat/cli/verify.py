"""`kafkacompat verify`: whether a broker keeps its promises, as its clients see it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kafkacompat.cli.overrides import overrides_option


@click.group()
def verify() -> None:
    """Find out whether a broker keeps its promises, as its clients see it."""


@verify.command()
@click.option("--bootstrap-server", "bootstrap", metavar="HOST:PORT", help="The broker. Without it, one of its own.")
@click.option(
    "--command-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Client properties for --bootstrap-server, as Kafka's tools take them.",
)
@click.option("--check", "recorded", metavar="FILE", type=click.Path(path_type=Path), help="Only check this history.")
@click.option("--history", metavar="FILE", type=click.Path(path_type=Path), help="Write the history to this file.")
@click.option("--seconds", type=click.FloatRange(min=1), help="How long (60; on its own broker 3 for each kill).")
@click.option("--kills", type=click.IntRange(min=0), help="Kill the broker so often (20 if there is a way to, else 0).")
@click.option("--restart-command", metavar="COMMAND", help="With --bootstrap-server, what kills and starts the broker.")
@click.option("--producers", default=2, show_default=True, type=click.IntRange(min=1), help="Idempotent producers.")
@click.option(
    "--transactional", default=2, show_default=True, type=click.IntRange(min=0), help="Those in transactions."
)
@click.option("--copiers", default=2, show_default=True, type=click.IntRange(min=0), help="Who consume and produce.")
@click.option("--members", default=3, show_default=True, type=click.IntRange(min=0), help="Members of a group.")
@click.option(
    "--throughput", default=200.0, show_default=True, type=click.FloatRange(min=1), help="Values a second, each."
)
@click.option(
    "--group-protocol",
    type=click.Choice(["classic", "consumer", "mixed"]),
    default="classic",
    show_default=True,
    help="The protocol of members and copiers; mixed: each chooses when it comes.",
)
@click.option("--seed", type=int, help="Decides the moments of kills and what clients choose (the time).")
@click.option("--topic-prefix", metavar="PREFIX", help="Of the names of topics and groups, which must be new.")
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1, max=32767),
    help="Of the topics (the broker's default.replication.factor).",
)
@overrides_option("Set a property of its own broker. May be given many times.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as a line of JSON instead of tables.")
def history(recorded: Path | None, history: Path | None, as_json: bool, **options: Any) -> None:
    """Let clients work, kill some of them and the broker, and check all that they saw.

    Idempotent and transactional producers, members of a group that come and go, clients that consume and produce in one
    transaction, and readers at both isolation levels write down what they do and see. Then nothing acknowledged may be
    lost, doubled or out of order, nothing aborted seen, no transaction torn and no committed offset wrong.

    Without --bootstrap-server a broker in a temporary folder is killed 20 times. It needs confluent-kafka, which comes with
    pip install 'kafkacompat[history]'. Ends with 0 when all is sound, with 1 when something is not, with 2 when it could not
    be checked: no broker, a client or a restart that failed, an interruption, or nothing done that could be judged.

    \b
    Examples:
      kafkacompat verify history
      kafkacompat verify history --kills 5 --override kafkacompat.acks.after=fsync
      kafkacompat verify history --bootstrap-server localhost:9092 --seconds 300 --history history.jsonl
      kafkacompat verify history --bootstrap-server localhost:9092 --command-config client.properties
      kafkacompat verify history --check history.jsonl --json
    """
    from kafkacompat.cli.verify_history import check, run

    sys.exit(run(history, as_json, options) if recorded is None else check(recorded, as_json))
