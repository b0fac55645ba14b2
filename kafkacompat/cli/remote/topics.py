"""`kafkacompat topics`: its commands and their options."""

from __future__ import annotations

import click

from kafkacompat.cli.remote.completion import complete_topics
from kafkacompat.cli.remote.options import Target, merge_changes, name_options, parse_settings, target_options

_topic_names = name_options("topic", complete_topics)
_optional_topic_names = name_options("topic", complete_topics, is_required=False)


@click.group()
def topics() -> None:
    """Administer topics of any Kafka cluster.

    The exit code of each command is 0 for success, 1 if the cluster refuses, and 2 if the options are not valid or no broker
    answers.
    """


@topics.command(name="list")
@target_options
@click.option("--exclude-internal", is_flag=True, help="Leave out topics of the brokers, such as __consumer_offsets.")
def list_topics(target: Target, exclude_internal: bool) -> None:
    """List topics with their partitions and replicas.

    \b
    Example:
      kafkacompat topics list --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import topics as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.list_topics, with_internal=not exclude_internal)


@topics.command()
@target_options
@_topic_names
@click.option("--partitions", type=click.IntRange(min=1), help="Number of partitions (default: the brokers' own).")
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 32767),
    help="Replicas of each partition (default: the brokers' own).",
)
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="A config. May be given many times.")
@click.option(
    "--replica-assignment",
    metavar="ID:ID,ID:ID,...",
    help="Brokers of the replicas of each partition, the preferred leader first: an alternative to the two numbers.",
)
@click.option("--if-not-exists", is_flag=True, help="Succeed if the topic exists.")
def create(
    target: Target,
    names: list[str],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    replica_assignment: str | None,
    if_not_exists: bool,
) -> None:
    """Create topics.

    \b
    Examples:
      kafkacompat topics create orders --bootstrap-server localhost:9092
      kafkacompat topics create --topic orders --partitions 6 --replication-factor 3 \\
        --config retention.ms=86400000 --config cleanup.policy=compact,delete --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import topics as work
    from kafkacompat.cli.remote.running import run_command

    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise click.UsageError("--replica-assignment says how many partitions and replicas there are: give it alone")
    plan = work.TopicPlan(
        partitions,
        replication_factor,
        parse_settings(configs, "--config"),
        work.parse_assignment(replica_assignment),
    )
    run_command(target, work.create_topics, names, plan, if_not_exists=if_not_exists)


@topics.command()
@target_options
@_optional_topic_names
@click.option("--exclude-internal", is_flag=True, help="Leave out topics of the brokers, such as __consumer_offsets.")
@click.option(
    "--under-replicated-partitions", is_flag=True, help="Show only partitions whose in-sync replicas are incomplete."
)
@click.option("--unavailable-partitions", is_flag=True, help="Show only partitions without a leader.")
def describe(
    target: Target,
    names: list[str],
    exclude_internal: bool,
    under_replicated_partitions: bool,
    unavailable_partitions: bool,
) -> None:
    """Show partitions, leaders, replicas and configs of some topics or of all.

    \b
    Examples:
      kafkacompat topics describe orders --bootstrap-server localhost:9092
      kafkacompat topics describe --under-replicated-partitions --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import topics as work
    from kafkacompat.cli.remote.running import run_command

    selection = work.PartitionSelection(
        with_internal=not exclude_internal,
        only_under_replicated=under_replicated_partitions,
        only_offline=unavailable_partitions,
    )
    run_command(target, work.describe_topics, names or None, selection)


@topics.command()
@target_options
@_topic_names
@click.option("--partitions", type=click.IntRange(min=1), help="New number of partitions, larger than before.")
@click.option(
    "--config", "configs", multiple=True, metavar="NAME=VALUE", help="A config to set. May be given many times."
)
@click.option(
    "--delete-config", "deleted", multiple=True, metavar="NAME", help="A config to reset. May be given many times."
)
def alter(
    target: Target,
    names: list[str],
    partitions: int | None,
    configs: tuple[str, ...],
    deleted: tuple[str, ...],
) -> None:
    """Add partitions to topics, and change their configs.

    Records with keys go to other partitions once there are more.

    \b
    Examples:
      kafkacompat topics alter orders --partitions 12 --bootstrap-server localhost:9092
      kafkacompat topics alter orders --config retention.ms=3600000 --delete-config cleanup.policy \\
        --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import topics as work
    from kafkacompat.cli.remote.running import run_command

    changes = merge_changes(parse_settings(configs, "--config"), deleted)
    if partitions is None and not changes:
        raise click.UsageError("nothing to change: give --partitions, --config or --delete-config")
    run_command(target, work.alter_topics, names, partitions, changes)


@topics.command()
@target_options
@_topic_names
@click.option("--if-exists", is_flag=True, help="Succeed if the topic does not exist.")
def delete(target: Target, names: list[str], if_exists: bool) -> None:
    """Delete topics with their records. A name is no regular expression.

    \b
    Example:
      kafkacompat topics delete orders payments --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import topics as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.delete_topics, names, if_exists=if_exists)


@topics.command()
@target_options
@_topic_names
@click.option("--all", "shows_all", is_flag=True, help="Show the configs with default values, too.")
def configs(target: Target, names: list[str], shows_all: bool) -> None:
    """Show the configs of topics: those that are set, or all. `kafkacompat configs` changes them.

    \b
    Examples:
      kafkacompat topics configs orders --bootstrap-server localhost:9092
      kafkacompat topics configs orders --all --json --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import configs as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.describe_configs, "topics", names, shows_all=shows_all)
