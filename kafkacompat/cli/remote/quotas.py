"""`kafkacompat quotas`: its commands and their options."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from kafkacompat.cli.instances.arguments import parse_configs, split_names
from kafkacompat.cli.remote.options import Target, merge_changes, target_options


def _entity_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for users, client ids and addresses; the command receives *entity*: names by type, None for the default."""

    @wraps(function)
    def call_with_entity(
        target: Target,
        user: str | None,
        client_id: str | None,
        ip: str | None,
        user_defaults: bool,
        client_defaults: bool,
        ip_defaults: bool,
        **options: Any,
    ) -> Any:
        entity: dict[str, str | None] = {}
        for kind, name, is_default in (
            ("user", user, user_defaults),
            ("client-id", client_id, client_defaults),
            ("ip", ip, ip_defaults),
        ):
            if name is not None and is_default:
                raise click.UsageError(f"{kind} {name} and the default of all others exclude each other")
            if name is not None or is_default:
                entity[kind] = name
        if "ip" in entity and len(entity) > 1:
            raise click.UsageError("quotas of addresses have neither a user nor a client id")
        return function(target, entity=entity, **options)

    for option in (
        click.option("--ip-defaults", is_flag=True, help="All addresses without quotas of their own."),
        click.option("--ip", metavar="ADDRESS", help="Address of clients."),
        click.option("--client-defaults", is_flag=True, help="All client ids without quotas of their own."),
        click.option("--client", "--client-id", "client_id", metavar="ID", help="Client id; with --user, that user's."),
        click.option("--user-defaults", is_flag=True, help="All users without quotas of their own."),
        click.option("--user", metavar="NAME", help="User, without the type of the principal."),
    ):
        call_with_entity = option(call_with_entity)
    return call_with_entity


@click.group()
def quotas() -> None:
    """Describe and alter the quotas of users, client ids and addresses.

    The quotas are producer_byte_rate, consumer_byte_rate, request_percentage and controller_mutation_rate of users and client
    ids, and connection_creation_rate of addresses.

    The exit code of each command is 0 for success, 1 if the cluster refuses, and 2 if the options are not valid or no broker
    answers.
    """


@quotas.command()
@target_options
@_entity_options
def describe(target: Target, entity: dict[str, str | None]) -> None:
    """Show quotas: all, or those of some users, client ids or addresses.

    \b
    Examples:
      kafkacompat quotas describe --bootstrap-server localhost:9092
      kafkacompat quotas describe --user alice --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import quotas as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.describe_quotas, entity)


@quotas.command()
@target_options
@_entity_options
@click.option(
    "--add-config", "added", multiple=True, metavar="QUOTA=NUMBER,...", help="Quotas to set. May be given many times."
)
@click.option(
    "--delete-config", "deleted", multiple=True, metavar="QUOTA,...", help="Quotas to remove. May be given many times."
)
def alter(target: Target, entity: dict[str, str | None], added: tuple[str, ...], deleted: tuple[str, ...]) -> None:
    """Set and remove quotas.

    \b
    Examples:
      kafkacompat quotas alter --user alice --add-config producer_byte_rate=1048576 --bootstrap-server localhost:9092
      kafkacompat quotas alter --user-defaults --client-defaults --delete-config request_percentage \\
        --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import quotas as work
    from kafkacompat.cli.remote.running import run_command

    changes = merge_changes(parse_configs(added), split_names(deleted))
    if not changes:
        raise click.UsageError("nothing to change: give --add-config or --delete-config")
    if not entity:
        raise click.UsageError("name an entity: --user, --client, --ip or their defaults")
    run_command(target, work.alter_quotas, entity, work.parse_quotas(changes))
