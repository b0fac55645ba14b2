"""`kafkacompat doctor` and its options."""

from __future__ import annotations

import sys
from pathlib import Path

import click

DEFAULT_TIMEOUT_S = 5.0


@click.command()
@click.argument("address", metavar="HOST:PORT")
@click.option(
    "--command-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties of a client, as Kafka's tools take them: security.protocol, ssl.* and sasl.*.",
)
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1, max=600),
    default=DEFAULT_TIMEOUT_S,
    show_default=True,
    help="Longest wait for each connection and each response.",
)
@click.option("--read-only", is_flag=True, help="Create no topic, and try no record.")
@click.option("--json", "as_json", is_flag=True, help="Write a line of JSON for each verdict.")
def doctor(address: str, command_config: Path | None, timeout_s: float, read_only: bool, as_json: bool) -> None:
    """Find out why clients cannot use a broker, or that they can.

    The checks go in the order of a client's steps: resolve the name, connect, TLS with the certificate's host name and
    end, the versions of the broker, the login, the advertised address of each broker as it works from this machine, one
    record through a topic of its own, which is deleted afterwards, and the broker's clock. Each check is one line with a
    verdict and what to do. The checks end at the first failure that the next ones need.

    The exit code is 0 if no check fails, 1 if one does, and 2 if the options are not valid. Warnings leave it at 0.
    The command needs no library beyond those of the broker.

    \b
    Examples:
      kafkacompat doctor localhost:9092
      kafkacompat doctor kafka-1.example.org:9093 --command-config client.properties --read-only
    """
    from kafkacompat.cli.remote.doctor.run import run
    from kafkacompat.cli.requests import parse_address

    try:
        parsed = parse_address(address)
    except ValueError as problem:
        raise click.BadParameter(str(problem), param_hint="HOST:PORT") from None
    sys.exit(run(parsed, command_config, timeout_s=timeout_s, tries_record=not read_only, as_json=as_json))
