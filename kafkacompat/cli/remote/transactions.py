"""`kafkacompat transactions`: its commands and their options."""

from __future__ import annotations

import time

import click

from kafkacompat.cli.remote.completion import complete_topics
from kafkacompat.cli.remote.options import Target, choice_option, complete_nothing, name_options, target_options

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead")

_transactional_ids = name_options("transactional-id", complete_nothing)
_topic_names = name_options("topic", complete_topics, is_required=False)
_optional_transactional_ids = name_options("transactional-id", complete_nothing, is_required=False)


@click.group()
def transactions() -> None:
    """List, describe and abort transactions, and find those that hang.

    The exit code of each command is 0 for success, 1 if the cluster refuses, and 2 if the options are not valid or no broker
    answers.
    """


@transactions.command(name="list")
@target_options
@choice_option("--state", "states", STATES, "Only transactions in this state.")
def list_transactions(target: Target, states: tuple[str, ...]) -> None:
    """List transactional ids with their producers and states.

    \b
    Examples:
      kafkacompat transactions list --bootstrap-server localhost:9092
      kafkacompat transactions list --state Ongoing --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import transactions as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.list_transactions, states)


@transactions.command()
@target_options
@_transactional_ids
def describe(target: Target, names: list[str]) -> None:
    """Show transactions: the producer, the state, how long they are open, and their partitions.

    \b
    Example:
      kafkacompat transactions describe billing-1 --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import transactions as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.describe_transactions, names, int(time.time() * 1000))


@transactions.command(name="describe-producers")
@target_options
@click.option("--topic", required=True, metavar="TOPIC", shell_complete=complete_topics)
@click.option("--partition", required=True, type=click.IntRange(min=0), metavar="NUMBER")
def describe_producers(target: Target, topic: str, partition: int) -> None:
    """Show the producers of a partition, and where their open transactions begin.

    \b
    Example:
      kafkacompat transactions describe-producers --topic orders --partition 0 --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import producers as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.describe_producers, topic, partition)


@transactions.command(name="find-hanging")
@target_options
@_topic_names
@click.option(
    "--max-transaction-timeout",
    "max_timeout_min",
    type=click.IntRange(min=0),
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="Longest time of a transaction: the brokers' transaction.max.timeout.ms.",
)
def find_hanging(target: Target, names: list[str], max_timeout_min: int) -> None:
    """Find transactions that hang, in some topics or in all.

    A transaction hangs if it is open in a partition for longer than a transaction may last, and its coordinator does not know of
    it. The command allows five minutes more. `abort` ends such a transaction.

    \b
    Examples:
      kafkacompat transactions find-hanging --bootstrap-server localhost:9092
      kafkacompat transactions find-hanging orders --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import hanging as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.find_hanging, names or None, max_timeout_min * 60_000, int(time.time() * 1000))


@transactions.command()
@target_options
@_optional_transactional_ids
@click.option("--topic", metavar="TOPIC", shell_complete=complete_topics, help="Topic of a hanging transaction.")
@click.option("--partition", type=click.IntRange(min=0), metavar="NUMBER", help="Partition of a hanging transaction.")
@click.option(
    "--start-offset",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    help="First offset of a hanging transaction, as describe-producers shows it.",
)
def abort(target: Target, names: list[str], topic: str | None, partition: int | None, start_offset: int | None) -> None:
    """Abort the open transaction of a transactional id, or a hanging transaction of a partition.

    The producer of the transactional id is fenced: its next request fails. A transaction hangs if its coordinator does not
    know of it. It blocks readers of committed records in its partition.

    \b
    Examples:
      kafkacompat transactions abort billing-1 --bootstrap-server localhost:9092
      kafkacompat transactions abort --topic orders --partition 0 --start-offset 73 --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import producers, transactions
    from kafkacompat.cli.remote.running import run_command

    if names and (topic, partition, start_offset) == (None, None, None):
        run_command(target, transactions.abort_transactions, names)
    if names or topic is None or partition is None or start_offset is None:
        raise click.UsageError("name a transactional id, or all of --topic, --partition and --start-offset")
    run_command(target, producers.abort_hanging_transaction, topic, partition, start_offset)
