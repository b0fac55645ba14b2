"""`kafkacompat verify`: checks of what a broker promises to its clients."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kafkacompat.cli.overrides import overrides_option


@click.group()
def verify() -> None:
    """Check that a broker keeps its promises to clients."""


@verify.command()
@click.option(
    "--bootstrap-server", "bootstrap", metavar="HOST:PORT", help="Broker to check, instead of one started here."
)
@click.option(
    "--command-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Client properties for --bootstrap-server, in the format of Kafka's tools.",
)
@click.option("--check", "recorded", metavar="FILE", type=click.Path(path_type=Path), help="Only check this history.")
@click.option("--history", metavar="FILE", type=click.Path(path_type=Path), help="Write the history to this file.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    help="Length of the run (default: 60; 3 for each kill with a broker started here).",
)
@click.option(
    "--kills",
    type=click.IntRange(min=0),
    help="Number of times the broker is killed (default: 20; 0 for --bootstrap-server without --restart-command).",
)
@click.option(
    "--restart-command", metavar="COMMAND", help="Command that kills and restarts the broker of --bootstrap-server."
)
@click.option("--producers", default=2, show_default=True, type=click.IntRange(min=1), help="Idempotent producers.")
@click.option(
    "--transactional", default=2, show_default=True, type=click.IntRange(min=0), help="Transactional producers."
)
@click.option(
    "--copiers",
    default=2,
    show_default=True,
    type=click.IntRange(min=0),
    help="Clients that consume and produce in one transaction.",
)
@click.option(
    "--members", default=3, show_default=True, type=click.IntRange(min=0), help="Members of a consumer group."
)
@click.option(
    "--throughput",
    default=200.0,
    show_default=True,
    type=click.FloatRange(min=1),
    help="Records a second and producer.",
)
@click.option(
    "--group-protocol",
    type=click.Choice(["classic", "consumer", "mixed"]),
    default="classic",
    show_default=True,
    help="Protocol of members and copiers; with mixed, each chooses one when it starts.",
)
@click.option(
    "--seed", type=int, help="Seed of the random choices of clients and of the moments of kills (default: the time)."
)
@click.option("--topic-prefix", metavar="PREFIX", help="Prefix of the names of topics and groups, which must be new.")
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1, max=32767),
    help="Replicas of the topics (default: the broker's default.replication.factor).",
)
@click.option(
    "--brokers",
    metavar="N",
    type=click.IntRange(1, 100),
    help="Start a cluster of N brokers and a ZooKeeper, and kill the brokers in turn. It needs a JDK.",
)
@overrides_option("Set a property of the broker started here. May be given many times.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as one line of JSON instead of tables.")
def history(recorded: Path | None, history: Path | None, as_json: bool, **options: Any) -> None:
    """Check what clients observe while processes are killed.

    The command runs clients against a broker, kills some of them and the broker, and checks the recorded history. The
    clients are idempotent and transactional producers, members of a group that come and go, copiers that consume and
    produce in one transaction, and readers at both isolation levels. Each writes down its requests and their results. The
    check is that nothing acknowledged is lost, duplicated or out of order, that no aborted record is read,
    that no transaction is torn, and that no committed offset is wrong.

    Without --bootstrap-server, the command starts a broker in a temporary folder and kills it 20 times. With --brokers it
    starts a cluster and kills its brokers in turn. It needs
    confluent-kafka: pip install '.[cli]' in a clone installs it.

    The exit code is 0 when everything is sound and 1 when something is wrong. It is 2 when nothing could be judged: there
    is no broker, a client or a restart failed, the run was interrupted, or the clients did too little.

    \b
    Examples:
      kafkacompat verify history
      kafkacompat verify history --brokers 3
      kafkacompat verify history --kills 5 --override kafkacompat.acks.after=fsync
      kafkacompat verify history --bootstrap-server localhost:9092 --seconds 300 --history history.jsonl
      kafkacompat verify history --bootstrap-server localhost:9092 --command-config client.properties
      kafkacompat verify history --check history.jsonl --json
    """
    from kafkacompat.cli.verify_history import check_recorded, record_and_check

    sys.exit(record_and_check(history, as_json, options) if recorded is None else check_recorded(recorded, as_json))
