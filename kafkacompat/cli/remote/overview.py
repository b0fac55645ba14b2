"""`kafkacompat brokers` and `kafkacompat status`."""

from __future__ import annotations

import click

from kafkacompat.cli.remote.options import Target, target_options


@click.command()
@target_options
def brokers(target: Target) -> None:
    """List the brokers of any Kafka cluster, with their leaders, replicas, lags and sizes.

    The exit code is 0 for success, and 2 if the options are not valid or no broker answers.

    \b
    Example:
      kafkacompat brokers --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import overview as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.list_brokers)


@click.command()
@target_options
def status(target: Target) -> None:
    """Show how a Kafka cluster is: its id, controller, brokers, partitions that need attention, and groups.

    `kafkacompat cluster status` shows the processes of a cluster as well, which `kafkacompat cluster start` started.

    The exit code is 0 if all partitions have leaders and all their replicas in sync, 1 if not, and 2 if the options are not
    valid or no broker answers.

    \b
    Example:
      kafkacompat status --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import overview as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.show_status)
