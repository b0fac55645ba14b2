"""`kafkacompat instances move`: an instance leaves its group of brokers for another one, under load."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from kafkacompat.cli.remote.options import connection_options


@click.command()
@connection_options("Brokers of the cluster, at an address of the brokers themselves and not of an instance.")
@click.option("--instance", "name", metavar="NAME", required=True, help="Name of the instance.")
@click.option("--to", "group", metavar="GROUP", required=True, help="The group of brokers to move to.")
@click.option(
    "--throttle",
    metavar="BYTES",
    type=click.IntRange(1, 2**63 - 1),
    help="Most bytes per second that each broker sends, and receives, for the move.",
)
@click.option("--dry-run", is_flag=True, help="Show which partitions move, and change nothing.")
def move(
    bootstrap: str, command_config: Path | None, name: str, group: str, throttle: int | None, dry_run: bool
) -> None:
    """Move an instance to another group of brokers while its clients work.

    The property kafkacompat.broker.groups of the brokers lists the groups. The brokers of the new group copy the replicas. Then
    they lead, and the brokers of the old group delete theirs. Clients receive NOT_LEADER_OR_FOLLOWER once a partition,
    and find the new leader.

    If the command is interrupted, the copying goes on. Run the command again: it follows the copying to its end, moves what is
    missing, and removes the throttle.

    The exit code is 0 when the instance lives in the group, 1 if it cannot move, and 2 if the options are not valid or no
    broker answers.

    \b
    Examples:
      kafkacompat instances move --bootstrap-server kafka1:9092 --instance shop --to b --dry-run
      kafkacompat instances move --bootstrap-server kafka1:9092 --instance shop --to b --throttle 50000000
    """
    from kafkacompat.cli.cluster.grow import run_cluster_command

    def run() -> None:
        _move(name, group, bootstrap, command_config, throttle, dry_run=dry_run)

    sys.exit(run_cluster_command(run))


def _move(
    name: str, group: str, bootstrap: str, command_config: Path | None, throttle: int | None, *, dry_run: bool
) -> None:
    from functools import partial

    from kafkacompat.cli.cluster.grow import copy_progress, describe_plan, pause, report_end, show_plan
    from kafkacompat.cli.cluster.instance_relocation import InstanceRelocation
    from kafkacompat.cli.cluster.reassigning import ClusterMover
    from kafkacompat.cli.cluster.spread_run import SpreadPlan, SpreadRun
    from kafkacompat.cli.command_config import read_command_config
    from kafkacompat.cli.requests import BlockingConnection, parse_address

    connect = partial(BlockingConnection, security=read_command_config(command_config))
    mover = ClusterMover([parse_address(server) for server in bootstrap.split(",")], connect)
    run = SpreadRun(mover, pause)
    relocation = InstanceRelocation(mover, run)
    destination = relocation.find_destination(name, group)

    def follow(plan: SpreadPlan) -> None:
        begun = time.monotonic()
        with copy_progress(plan) as report_progress:
            was_throttled = run.carry_out(plan, throttle, report_progress)
        report_end(plan, time.monotonic() - begun, was_throttled=was_throttled)

    if dry_run:
        plan = relocation.plan(destination)
        if plan.all_moves:
            show_plan(plan, describe_plan(plan))
        else:
            click.echo(f"All replicas of the instance {name} are in the group {group}: nothing moves")
        return
    relocation.carry_out(destination, follow)
    click.echo(f"The instance {name} lives in the group {group}", err=True)
