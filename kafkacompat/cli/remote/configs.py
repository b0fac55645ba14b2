"""`kafkacompat configs`: its commands and their options."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from kafkacompat.cli.instances.arguments import parse_configs, split_names
from kafkacompat.cli.remote.options import Target, merge_changes, target_options

ENTITY_TYPES = ("topics", "brokers", "broker-loggers", "groups", "client-metrics")
QUOTA_TYPES = ("users", "clients", "ips")


def _entity_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Entities as arguments or by the options of kafka-configs; the command receives *entity_type* and *names*, None for all."""

    @wraps(function)
    def call_with_entities(
        target: Target,
        words: tuple[str, ...],
        named_type: str | None,
        named: tuple[str, ...],
        is_default: bool,
        **options: Any,
    ) -> Any:
        names = [*words, *named]
        entity_type = named_type or (names.pop(0) if words else None)
        if entity_type is None:
            raise click.UsageError(f"name the type of the entity: {', '.join(ENTITY_TYPES)}")
        _check_type(entity_type)
        if is_default and entity_type != "brokers":
            raise click.UsageError("only brokers have a default, --entity-default")
        if is_default:
            names.append("")
        return function(target, entity_type=entity_type, names=names or None, **options)

    for option in (
        click.argument("words", nargs=-1, metavar="[TYPE [NAME]...]"),
        click.option("--entity-type", "named_type", metavar="TYPE", help="Type of the entities, if not an argument."),
        click.option(
            "--entity-name", "named", multiple=True, metavar="NAME", help="An entity. May be given many times."
        ),
        click.option("--entity-default", "is_default", is_flag=True, help="The default of all brokers."),
    ):
        call_with_entities = option(call_with_entities)
    return call_with_entities


def _check_type(entity_type: str) -> None:
    if entity_type in QUOTA_TYPES:
        raise click.UsageError(f"{entity_type} have quotas, which `kafkacompat quotas` describes and alters")
    if entity_type not in ENTITY_TYPES:
        raise click.UsageError(f"{entity_type} is no type of entities: it takes one of {', '.join(ENTITY_TYPES)}")


@click.group()
def configs() -> None:
    """Describe and alter configs of topics, brokers, groups and client metrics subscriptions.

    The type of the entities is topics, brokers, broker-loggers, groups or client-metrics, as in kafka-configs.

    The exit code of each command is 0 for success, 1 if the cluster refuses, and 2 if the options are not valid or no broker
    answers.
    """


@configs.command()
@target_options
@_entity_options
@click.option("--all", "shows_all", is_flag=True, help="Show the configs with default values, too.")
def describe(target: Target, entity_type: str, names: list[str] | None, shows_all: bool) -> None:
    """Show the configs that are set on entities, or all configs. Without a name, it shows all entities of the type.

    \b
    Examples:
      kafkacompat configs describe topics orders --bootstrap-server localhost:9092
      kafkacompat configs describe brokers 1 --all --bootstrap-server localhost:9092
      kafkacompat configs describe --entity-type brokers --entity-default --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import configs as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.describe_configs, entity_type, names, shows_all=shows_all)


@configs.command()
@target_options
@_entity_options
@click.option(
    "--add-config",
    "added",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="Configs to set. A value with commas stands in brackets. May be given many times.",
)
@click.option(
    "--delete-config", "deleted", multiple=True, metavar="NAME,...", help="Configs to reset. May be given many times."
)
def alter(
    target: Target, entity_type: str, names: list[str] | None, added: tuple[str, ...], deleted: tuple[str, ...]
) -> None:
    """Set and reset configs of entities.

    \b
    Examples:
      kafkacompat configs alter topics orders --add-config retention.ms=3600000 --bootstrap-server localhost:9092
      kafkacompat configs alter brokers --entity-default --add-config log.cleaner.threads=2 \\
        --bootstrap-server localhost:9092
      kafkacompat configs alter topics orders --add-config cleanup.policy=[compact,delete] \\
        --delete-config retention.ms --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import configs as work
    from kafkacompat.cli.remote.running import run_command

    changes = merge_changes(parse_configs(added), split_names(deleted))
    if not changes:
        raise click.UsageError("nothing to change: give --add-config or --delete-config")
    if names is None:
        raise click.UsageError(f"name the {entity_type} to alter")
    run_command(target, work.alter_configs, entity_type, names, changes)
