"""`kafkacompat` and its subcommands, with their options in Kafka's words."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kafkacompat import __version__
from kafkacompat.cli.log import log
from kafkacompat.cli.overrides import overrides_option
from kafkacompat.cli.spark import spark
from kafkacompat.cli.verify import verify


def _print_version(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        from kafkacompat.wire.walk_form import FORM

        click.echo(f"kafkacompat {__version__}, record walk {FORM}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and whether the walk over records is compiled, and exit.",
)
def main() -> None:
    """A broker that speaks the Kafka protocol.

    Without a properties file `kafkacompat serve` is a complete broker for development: node 1 on
    127.0.0.1:9092, data in ./kafkacompat-data, topics created when they are first used.
    """


main.add_command(log)
main.add_command(spark)
main.add_command(verify)


@main.command()
@click.argument("properties", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@overrides_option("Set a property, over the file and the defaults. May be given many times.")
def serve(properties: Path | None, overrides: dict[str, str]) -> None:
    """Serve until SIGTERM.

    PROPERTIES is a server.properties file as Kafka takes it; with one, Kafka's defaults hold. When clients can connect,
    a line beginning "kafkacompat ready" is printed with the listeners, the node's id, the cluster's id and the data
    directories. Logs go to standard error.

    \b
    Examples:
      kafkacompat serve
      kafkacompat serve --override listeners=PLAINTEXT://127.0.0.1:0 --override log.dirs=/tmp/data
      kafkacompat serve config/server.properties --override node.id=2
    """
    from kafkacompat.cli.serve import serve as run

    sys.exit(run(properties, overrides))
