"""`kafkacompat` and its subcommands. Options are named as in Kafka's tools."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kafkacompat import __version__
from kafkacompat.cli.lazy_group import LazyGroup
from kafkacompat.cli.overrides import overrides_option

COMMANDS = {
    "acls": "kafkacompat.cli.remote.acls:acls",
    "brokers": "kafkacompat.cli.remote.overview:brokers",
    "cluster": "kafkacompat.cli.cluster.commands:cluster",
    "configs": "kafkacompat.cli.remote.configs:configs",
    "consume": "kafkacompat.cli.remote.records.consume_command:consume",
    "doctor": "kafkacompat.cli.remote.doctor.command:doctor",
    "groups": "kafkacompat.cli.remote.groups:groups",
    "instances": "kafkacompat.cli.instances.commands:instances",
    "log": "kafkacompat.cli.log:log",
    "metadata": "kafkacompat.cli.metadata:metadata",
    "produce": "kafkacompat.cli.remote.records.produce_command:produce",
    "quotas": "kafkacompat.cli.remote.quotas:quotas",
    "spark": "kafkacompat.cli.spark:spark",
    "status": "kafkacompat.cli.remote.overview:status",
    "topics": "kafkacompat.cli.remote.topics:topics",
    "transactions": "kafkacompat.cli.remote.transactions:transactions",
    "users": "kafkacompat.cli.remote.users:users",
    "verify": "kafkacompat.cli.verify:verify",
}
"""Where each command but `serve` is declared."""


def _print_version(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        from kafkacompat.wire.walk_form import FORM

        click.echo(f"kafkacompat {__version__}, record walk {FORM}")
        context.exit()


@click.group(cls=LazyGroup, places=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and whether the walk over records is compiled, and exit.",
)
def main() -> None:
    """A broker that speaks the Kafka protocol, tools for its data, and commands for any Kafka cluster.

    `kafkacompat serve` alone starts a broker for development: node 1 on 127.0.0.1:9092, with its data in
    ./kafkacompat-data. It creates a topic when a client first uses it.
    """


@main.command()
@click.argument("properties", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--host", help="Address to listen on, instead of the listener's own; 0.0.0.0 is every IPv4 address.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to listen on, instead of the listener's own; 0 is a free one."
)
@click.option("--data", metavar="DIRECTORY", help="Data directory, or several separated by commas: short for log.dirs.")
@click.option(
    "--instances",
    metavar="FILE",
    help="YAML file of the instances of a single node: short for kafkacompat.instances.file.",
)
@click.option(
    "--faults",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="For tests of clients: answer errors, and lose and damage responses, by the rules in this YAML file.",
)
@click.option(
    "--test-clock",
    is_flag=True,
    help="For tests of clients: let /v1/test of the HTTP listener advance the broker's clock and change its faults.",
)
@click.option(
    "--log-level",
    type=click.Choice(["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"], case_sensitive=False),
    default="INFO",
    show_default=True,
    help="Least important log lines to write.",
)
@overrides_option("Set a property. May be given many times.")
@click.option(
    "--strict", is_flag=True, help="Refuse to start with a property that no broker has, instead of a warning."
)
def serve(
    properties: Path | None,
    host: str | None,
    port: int | None,
    data: str | None,
    instances: str | None,
    faults: Path | None,
    test_clock: bool,
    log_level: str,
    overrides: dict[str, str],
    strict: bool,
) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP.

    PROPERTIES is a server.properties file of Apache Kafka. With a file, Kafka's defaults apply. Without one, the broker
    is node 1 on 127.0.0.1:9092 with its data in ./kafkacompat-data.

    An environment variable sets any property: KAFKACOMPAT_ and the property in capitals, where _ stands for a dot,
    __ for an underscore and ___ for a dash, as for the container image of Apache Kafka. Two variables are
    switches, not properties: with the value 1, KAFKACOMPAT_PORTABLE makes the broker use portable system calls only, and
    KAFKACOMPAT_PLAIN_WALK makes it check records in plain Python instead of compiled code. Options win over variables,
    and variables over the file. KAFKACOMPAT_BOOTSTRAP_SERVER is for the other commands.

    When clients can connect, the command prints a line that begins with "kafkacompat ready" and names the listeners,
    the node's id, the cluster's id and the data directories. Log lines go to standard error.

    \b
    Examples:
      kafkacompat serve
      kafkacompat serve --port 9093 --data /var/lib/kafkacompat
      kafkacompat serve --override num.partitions=6 --override auto.create.topics.enable=false
      kafkacompat serve config/server.properties --override node.id=2 --strict
      KAFKACOMPAT_LOG_RETENTION_MS=3600000 kafkacompat serve
      kafkacompat serve --instances instances.yaml
      kafkacompat serve --faults faults.yaml
      kafkacompat serve --test-clock --override kafkacompat.http.listener=127.0.0.1:8080
    """
    if data is not None:
        if "log.dirs" in overrides:
            raise click.UsageError("--data and --override log.dirs=... both name the data directory: give one of them")
        overrides = {**overrides, "log.dirs": data}
    if instances is not None:
        overrides = {**overrides, "kafkacompat.instances.file": instances}
    from kafkacompat.cli.serve import serve_broker

    sys.exit(
        serve_broker(
            properties,
            overrides,
            host=host,
            port=port,
            log_level=log_level,
            strict=strict,
            faults=faults,
            has_test_clock=test_clock,
        )
    )
