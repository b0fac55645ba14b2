"""`kafkacompat users`: its commands and their options."""

from __future__ import annotations

import click

from kafkacompat.cli.remote.options import Target, complete_nothing, name_options, target_options

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


_user_names = name_options("user", complete_nothing)


@click.group()
def users() -> None:
    """List, create and delete users with SCRAM passwords.

    The exit code of each command is 0 for success, 1 if the cluster refuses, and 2 if the options are not valid or no broker
    answers.
    """


@users.command(name="list")
@target_options
def list_users(target: Target) -> None:
    """List users with their mechanisms.

    \b
    Example:
      kafkacompat users list --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import users as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.list_users)


@users.command()
@target_options
@_user_names
@click.option(
    "--mechanism", type=click.Choice(MECHANISMS, case_sensitive=False), default="SCRAM-SHA-512", show_default=True
)
@click.option(
    "--iterations", type=click.IntRange(4096, 16384), default=4096, show_default=True, help="Rounds of the hash."
)
def create(target: Target, names: list[str], mechanism: str, iterations: int) -> None:
    """Create a user, or give it another password.

    The command asks for the password, or reads it as a line from standard input, where that is no terminal. The broker
    receives a hash of it.

    \b
    Examples:
      kafkacompat users create alice --bootstrap-server localhost:9092
      echo "$PASSWORD" | kafkacompat users create alice --mechanism SCRAM-SHA-256 --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.passwords import ask_password
    from kafkacompat.cli.remote.administration import users as work
    from kafkacompat.cli.remote.running import run_command

    if len(names) > 1:
        raise click.UsageError("one user is created at a time")
    password = ask_password(f"{mechanism} of the user {names[0]}")
    if not password:
        raise click.UsageError(f"the password of the user {names[0]} is empty")
    run_command(target, work.create_user, names[0], password, mechanism, iterations)


@users.command()
@target_options
@_user_names
@click.option(
    "--mechanism",
    type=click.Choice(MECHANISMS, case_sensitive=False),
    help="Delete only the password of this mechanism.",
)
def delete(target: Target, names: list[str], mechanism: str | None) -> None:
    """Delete the passwords of users.

    \b
    Example:
      kafkacompat users delete alice --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import users as work
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.delete_users, names, mechanism)
