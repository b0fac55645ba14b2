"""`kafkacompat groups`: its commands and their options."""

from __future__ import annotations

import time
from typing import Any

import click

from kafkacompat.cli.remote.completion import complete_groups, complete_topics
from kafkacompat.cli.remote.options import Target, choice_option, name_options, target_options

TYPES = ("classic", "consumer", "share", "streams")
STATES = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Stable",
    "Dead",
)
"""The states of groups of all types."""

_group_names = name_options("group", complete_groups)
_optional_group_names = name_options("group", complete_groups, is_required=False)


@click.group()
def groups() -> None:
    """Administer groups of any Kafka cluster: of consumers of both protocols, share groups and streams groups.

    The exit code of each command is 0 for success, 1 if the cluster refuses, and 2 if the options are not valid or no broker
    answers.
    """


@groups.command(name="list")
@target_options
@choice_option("--state", "states", STATES, "Only groups in this state.")
@choice_option("--type", "types", TYPES, "Only groups of this type.")
def list_groups(target: Target, states: tuple[str, ...], types: tuple[str, ...]) -> None:
    """List groups with their types and states.

    \b
    Examples:
      kafkacompat groups list --bootstrap-server localhost:9092
      kafkacompat groups list --state Empty --type classic --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import group_listing as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.write_groups, states, types)


@groups.command()
@target_options
@_optional_group_names
@click.option("--all-groups", is_flag=True, help="Describe all groups, as without a name.")
@click.option("--offsets", "view", flag_value="offsets", default="offsets", help="Show offsets and lags: the default.")
@click.option("--members", "view", flag_value="members", help="Show members and their partitions.")
@click.option("--state", "view", flag_value="state", help="Show states, coordinators and total lags.")
def describe(target: Target, names: list[str], all_groups: bool, view: str) -> None:
    """Show the offsets and the lag of groups, their members or their states. JSON has all of these.

    The lag is the number of offsets between the committed offset and the end of the partition.

    \b
    Examples:
      kafkacompat groups describe billing --bootstrap-server localhost:9092
      kafkacompat groups describe --all-groups --state --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import group_description as work
    from kafkacompat.cli.remote.running import run_command

    if all_groups and names:
        raise click.UsageError("--all-groups and names of groups exclude each other")
    run_command(target, work.describe_groups, names or None, work.View(view))


@groups.command()
@target_options
@_group_names
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:PARTITION,...]",
    shell_complete=complete_topics,
    help="A topic, or some of its partitions. May be given many times.",
)
@click.option("--all-topics", is_flag=True, help="All partitions that the group has an offset in.")
@click.option("--to-earliest", is_flag=True, help="Go to the first record.")
@click.option("--to-latest", is_flag=True, help="Go to the end: only later records are read.")
@click.option("--to-current", is_flag=True, help="Stay, or go to the nearest offset that the partition has.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="OFFSET", help="Go to this offset.")
@click.option("--shift-by", type=int, metavar="N", help="Go this many offsets forward, or back with a minus.")
@click.option(
    "--to-datetime", metavar="TIME", help="Go to the first record since a time, such as 2026-01-31T08:00:00.000 (UTC)."
)
@click.option("--by-duration", metavar="PERIOD", help="Go to the first record of the last period, such as PT1H or P1D.")
@click.option("--dry-run", is_flag=True, help="Only show the new offsets: the default.")
@click.option("--execute", is_flag=True, help="Commit the new offsets.")
def reset(
    target: Target,
    names: list[str],
    topics: tuple[str, ...],
    all_topics: bool,
    dry_run: bool,
    execute: bool,
    **positions: Any,
) -> None:
    """Give a group other offsets. Without --execute, the command only shows them.

    The group must have no members. A group that does not exist yet gets its first offsets.

    \b
    Examples:
      kafkacompat groups reset billing --topic orders --to-earliest --bootstrap-server localhost:9092
      kafkacompat groups reset billing --topic orders:0,2 --shift-by -100 --execute --bootstrap-server localhost:9092
      kafkacompat groups reset billing --all-topics --by-duration PT1H --execute --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import group_reset as work
    from kafkacompat.cli.remote.running import run_command

    if len(names) > 1:
        raise click.UsageError("one group is reset at a time")
    if bool(topics) == all_topics:
        raise click.UsageError("name the topics to reset with --topic, or give --all-topics")
    if dry_run and execute:
        raise click.UsageError("--dry-run and --execute exclude each other")
    destination = work.choose_destination(now_ms=int(time.time() * 1000), **positions)
    wanted = None if all_topics else work.parse_topics(topics)
    run_command(target, work.reset_offsets, names[0], wanted, destination, is_executed=execute)


@groups.command()
@target_options
@_group_names
def delete(target: Target, names: list[str]) -> None:
    """Delete groups with their offsets. A group with members is refused.

    \b
    Example:
      kafkacompat groups delete billing --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import group_description as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.delete_groups, names)
