"""`kafkacompat instances`: its commands and their options."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kafkacompat.cli.instance_move import move
from kafkacompat.cli.instances.arguments import Period, parse_configs, split_names
from kafkacompat.cli.remote.options import Target, connection_options, json_option

_connection_options = connection_options(
    "Brokers of the cluster, at an address of the brokers themselves and not of an instance."
)
_name_option = click.option("--instance", "name", metavar="NAME", required=True, help="Name of the instance.")
_add_config_option = click.option(
    "--add-config",
    "added",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="Properties to set. A value with commas stands in brackets. May be given many times.",
)


@click.group()
def instances() -> None:
    """Administer instances: virtual clusters for tenants on shared brokers.

    The commands send requests to any broker of the cluster. They need an address of the brokers themselves: a client of
    an instance cannot reach them. With an authorizer they need ALTER_CONFIGS and DESCRIBE_CONFIGS on the cluster.

    The exit code of each command is 0 for success, 1 if the cluster refuses the request, and 2 if the options are not valid
    or no broker answers.
    """


@instances.command()
@_connection_options
@_name_option
@_add_config_option
@click.option("--if-not-exists", is_flag=True, help="Change nothing, and succeed, if the instance exists.")
@click.option("--dry-run", is_flag=True, help="Check everything, and create nothing.")
@json_option
def create(
    bootstrap: str,
    command_config: Path | None,
    name: str,
    added: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Create an instance, with a cluster id and a secret of its own.

    Its clients find an empty cluster. Existing topics whose names begin with its prefix are an error.

    \b
    Examples:
      kafkacompat instances create --bootstrap-server localhost:9092 --instance shop
      kafkacompat instances create --bootstrap-server localhost:9092 --instance shop \\
        --add-config listeners=PLAINTEXT://:19092,whitelist=[10.1.0.0/16,10.2.0.0/16],limit.topics=100
    """
    from kafkacompat.cli.instances.run import create as run

    target = Target(bootstrap, command_config, as_json)
    sys.exit(run(target, name, parse_configs(added), if_not_exists=if_not_exists, dry_run=dry_run))


@instances.command(name="list")
@_connection_options
@json_option
def list_instances(bootstrap: str, command_config: Path | None, as_json: bool) -> None:
    """List all instances, with state and limits.

    \b
    Example:
      kafkacompat instances list --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.instances.run import list_all

    sys.exit(list_all(Target(bootstrap, command_config, as_json)))


@instances.command()
@_connection_options
@_name_option
@json_option
def describe(bootstrap: str, command_config: Path | None, name: str, as_json: bool) -> None:
    """Show the properties of an instance, its brokers, and its usage beside its limits.

    \b
    Example:
      kafkacompat instances describe --bootstrap-server localhost:9092 --instance shop
    """
    from kafkacompat.cli.instances.run import describe as run

    sys.exit(run(Target(bootstrap, command_config, as_json), name))


@instances.command()
@_connection_options
@_name_option
@_add_config_option
@click.option(
    "--delete-config",
    "deleted",
    multiple=True,
    metavar="NAME,...",
    help="Properties to return to their defaults. May be given many times.",
)
@click.option("--dry-run", is_flag=True, help="Check everything, and change nothing.")
def alter(
    bootstrap: str,
    command_config: Path | None,
    name: str,
    added: tuple[str, ...],
    deleted: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Set and delete properties of an instance, all together or none.

    \b
    Example:
      kafkacompat instances alter --bootstrap-server localhost:9092 --instance shop \\
        --add-config quota.produce.bytes.per.second=10485760 --delete-config limit.topics
    """
    from kafkacompat.cli.instances.run import alter as run

    if not added and not deleted:
        raise click.UsageError("nothing to change: give --add-config or --delete-config")
    target = Target(bootstrap, command_config)
    sys.exit(run(target, name, parse_configs(added), split_names(deleted), dry_run=dry_run))


@instances.command()
@_connection_options
@_name_option
@click.option(
    "--grace",
    "grace_ms",
    type=Period(),
    default="7d",
    show_default=True,
    help="Time until the data go, such as 36h; during it `restore` brings the instance back.",
)
@click.option("--force", is_flag=True, help="Do not ask for a confirmation of --grace 0.")
def delete(bootstrap: str, command_config: Path | None, name: str, grace_ms: int, force: bool) -> None:
    """Delete an instance in two steps.

    The instance serves no client from now on. Its data stay for the grace period. Then the brokers remove its topics,
    groups, users, quotas, access rules and tokens, and at last the instance itself. Adopted topics go with it.

    With --grace 0 the command asks for the name, and returns when everything is gone.

    \b
    Examples:
      kafkacompat instances delete --bootstrap-server localhost:9092 --instance shop --grace 30d
      kafkacompat instances delete --bootstrap-server localhost:9092 --instance shop --grace 0 --force
    """
    from kafkacompat.cli.instances.run import delete as run

    if grace_ms == 0 and not force:
        typed = click.prompt(f"All data of {name} are lost. Type its name to go on", default="", show_default=False)
        if typed != name:
            raise click.UsageError("this is not the name: nothing was deleted")
    sys.exit(run(Target(bootstrap, command_config), name, grace_ms))


@instances.command()
@_connection_options
@_name_option
def restore(bootstrap: str, command_config: Path | None, name: str) -> None:
    """Bring an instance back that `delete` has stopped, within its grace period.

    \b
    Example:
      kafkacompat instances restore --bootstrap-server localhost:9092 --instance shop
    """
    from kafkacompat.cli.instances.run import restore as run

    sys.exit(run(Target(bootstrap, command_config), name))


@instances.command()
@click.argument("action", type=click.Choice(["list", "add", "remove", "set"]))
@click.argument("networks", nargs=-1)
@_connection_options
@_name_option
@json_option
def whitelist(
    action: str, networks: tuple[str, ...], bootstrap: str, command_config: Path | None, name: str, as_json: bool
) -> None:
    """List or change the networks that may connect to an instance.

    NETWORKS are IPv4 and IPv6 addresses or networks such as 10.1.0.0/16. Without a whitelist all may connect. `set none`
    locks everyone out, and `set` without networks removes the whitelist. The last network cannot be removed by `remove`.

    \b
    Examples:
      kafkacompat instances whitelist list --bootstrap-server localhost:9092 --instance shop
      kafkacompat instances whitelist add 10.1.0.0/16 fd00::/8 --bootstrap-server localhost:9092 --instance shop
      kafkacompat instances whitelist set none --bootstrap-server localhost:9092 --instance shop
    """
    from kafkacompat.cli.instances.run import change_whitelist, list_whitelist

    target, wanted = Target(bootstrap, command_config, as_json), split_names(networks)
    if action == "list":
        sys.exit(list_whitelist(target, name))
    if not wanted and action != "set":
        raise click.UsageError(f"`whitelist {action}` needs networks")
    sys.exit(change_whitelist(target, name, action, wanted))


@instances.command()
@_connection_options
@click.option("--instance", "name", metavar="NAME", help="Name of the instance. Without it, all instances.")
@json_option
def usage(bootstrap: str, command_config: Path | None, name: str | None, as_json: bool) -> None:
    """Show what instances use, beside their limits: topics, partitions, groups and stored bytes.

    The command asks all brokers. Traffic is in the metrics of the brokers and in GET /v1/instances/NAME/usage.

    \b
    Examples:
      kafkacompat instances usage --bootstrap-server localhost:9092
      kafkacompat instances usage --bootstrap-server localhost:9092 --instance shop --json
    """
    from kafkacompat.cli.instances.run import show_usage

    sys.exit(show_usage(Target(bootstrap, command_config, as_json), name))


@instances.command()
@_connection_options
@_name_option
@click.option("--topics", multiple=True, metavar="REGEX,...", help="Topics to adopt, by regular expressions of RE2.")
@click.option("--groups", multiple=True, metavar="REGEX,...", help="Groups to adopt, with their offsets.")
@click.option("--transactional-ids", multiple=True, metavar="REGEX,...", help="Transactional ids to adopt.")
@click.option("--users", multiple=True, metavar="REGEX,...", help="Users with SCRAM credentials to adopt.")
@click.option("--dry-run", is_flag=True, help="Show what would be adopted, and change nothing.")
@json_option
def adopt(
    bootstrap: str,
    command_config: Path | None,
    name: str,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    transactional_ids: tuple[str, ...],
    users: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Give existing topics, groups, transactional ids and users of the cluster to an instance, in place.

    Nothing is copied. The instance's clients see each thing under the name that it has, and consumers go on at their
    committed offsets. Clients of the brokers' own addresses see no difference. The brokers' own topics, and what another
    instance has, stay out. A regular expression matches a whole name.

    Deleting the instance deletes what it has adopted. To give something back, delete it from topic.names, group.names,
    transactional.id.names or user.names by `alter`.

    \b
    Examples:
      kafkacompat instances adopt --bootstrap-server localhost:9092 --instance shop --topics 'orders,payments-.*' \\
        --groups 'billing.*' --dry-run
    """
    from kafkacompat.cli.instances.run import adopt as run

    wanted = {
        "topic.names": split_names(topics),
        "group.names": split_names(groups),
        "transactional.id.names": split_names(transactional_ids),
        "user.names": split_names(users),
    }
    if not any(wanted.values()):
        raise click.UsageError("nothing to adopt: give --topics, --groups, --transactional-ids or --users")
    sys.exit(run(Target(bootstrap, command_config, as_json), name, wanted, dry_run=dry_run))


instances.add_command(move)
