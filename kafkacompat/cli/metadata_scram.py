"""`kafkacompat metadata add-scram`: the first users, before a broker accepts requests that could create them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from kafkacompat.cli.columns import escape_control_characters
from kafkacompat.cli.metadata_export import EXIT_REFUSED, StoppedNode
from kafkacompat.cli.passwords import ask_password, salt_password
from kafkacompat.cli.zookeeper_work import work_on_zookeeper
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.ledger import MetadataLedger
from kafkacompat.metadata.scram_changes import ScramUpsertion, alter_scram_credentials
from kafkacompat.metadata.store import MetadataStore, StoreError
from kafkacompat.metadata.store_changes import StoreForm
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.zookeeper_store import ZooKeeperStore
from kafkacompat.security.scram import MAX_ITERATIONS, MIN_ITERATIONS, SCRAM_MECHANISMS, ScramMechanism
from kafkacompat.storage.directory.meta_properties import LogDirectoryError
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.wire.errors import KafkaError
from kafkacompat.zookeeper.client import NodeExistsError, ZooKeeperError
from kafkacompat.zookeeper.settings import ZooKeeperSettings, parse_connect

if TYPE_CHECKING:
    from kafkacompat.timers import Clock
    from kafkacompat.zookeeper.client import ZooKeeper

EXIT_BAD_INPUT = 2

_USER = re.compile(r"(?P<mechanism>[A-Z0-9-]+)=\[(?P<options>.*)\]", re.DOTALL)
_OPTIONS = ("name", "password", "iterations")


class UserError(ValueError):
    """A user as given cannot be created; the message is one sentence without the password."""


def add_users(users: Sequence[str], directory: str | None, connect: str | None) -> int:
    """Create or replace credentials in a stopped node's directory or in ZooKeeper; returns the exit code."""
    try:
        changes = [parse_user(text, ask_password) for text in users]
        _check_distinct(changes)
        if connect is not None:
            parse_connect(connect)
    except (UserError, ZooKeeperError) as problem:
        return _print_refusal(problem, EXIT_BAD_INPUT)
    try:
        if directory is not None:
            os.makedirs(directory, exist_ok=True)
            with StoppedNode.hold([directory]) as node:
                node.change_metadata(lambda store: _change(store, changes, StoreForm()))
        elif connect is not None:
            _change_in_zookeeper(connect, changes)
    except (StoreError, LogDirectoryError, ZooKeeperError, KafkaError, OSError) as problem:
        return _print_refusal(problem, EXIT_REFUSED)
    for change in changes:
        name = ScramMechanism(change.mechanism).sasl_name
        click.echo(escape_control_characters(f"Added {name} of the user {change.user}"))
    return 0


def _check_distinct(changes: Sequence[ScramUpsertion]) -> None:
    """Raise UserError if a user is given twice: one change of the metadata has one credential of each user."""
    for user, times in Counter(change.user for change in changes).items():
        if times > 1:
            raise UserError(
                f"the user {user} is given {times} times: run the command once for each mechanism of a user"
            )


def _print_refusal(problem: Exception, exit_code: int) -> int:
    click.echo(escape_control_characters(f"kafkacompat: {describe_error(problem)}"), err=True)
    return exit_code


def parse_user(text: str, ask_password: Callable[[str], str]) -> ScramUpsertion:
    """Parse ``SCRAM-SHA-256=[name=alice,password=...,iterations=4096]``; a missing password is asked for. Raises UserError."""
    match = _USER.fullmatch(text)
    if match is None or match["mechanism"] not in SCRAM_MECHANISMS:
        names = " or ".join(SCRAM_MECHANISMS)
        raise UserError(f"a user is given as MECHANISM=[name=NAME,password=PASSWORD,iterations=N] with {names}")
    options = _parse_options(match["options"])
    name = options.get("name", "")
    if not name:
        raise UserError("a user has no name: add name=NAME")
    iterations = options.get("iterations", str(MIN_ITERATIONS))
    if not iterations.isdecimal():
        raise UserError(f"iterations={iterations} of the user {name} is no whole number")
    if not MIN_ITERATIONS <= int(iterations[:9]) <= MAX_ITERATIONS:
        limits = f"{MIN_ITERATIONS} to {MAX_ITERATIONS}"
        raise UserError(f"iterations={iterations} of the user {name} is not valid: it takes {limits}")
    mechanism = SCRAM_MECHANISMS[match["mechanism"]]
    password = options.get("password") or ask_password(f"{match['mechanism']} of the user {name}")
    if not password:
        raise UserError(f"the password of the user {name} is empty")
    return ScramUpsertion(name, mechanism, int(iterations), *salt_password(password, mechanism, int(iterations)))


def _parse_options(text: str) -> Mapping[str, str]:
    options = {}
    for number, option in enumerate(filter(None, text.split(",")), 1):
        name, equals, value = option.partition("=")
        if not equals or name.strip() not in _OPTIONS:
            raise UserError(
                f"option {number} of a user is not one of {', '.join(f'{name}=...' for name in _OPTIONS)}:"
                " leave out a password with a comma, and the command asks for it"
            )
        options[name.strip()] = value.strip().strip('"')
    return options


async def _change(store: MetadataStore, changes: Sequence[ScramUpsertion], form: StoreForm) -> None:
    """Write the credentials; raises StoreError and KafkaError."""
    ledger = MetadataLedger(store, lambda image: image, form)
    await ledger.load()

    def plan(draft: MetadataDraft) -> None:
        for problem in alter_scram_credentials(draft, changes).values():
            if problem is not None:
                raise problem

    await ledger.commit(plan)


def _change_in_zookeeper(connect: str, changes: Sequence[ScramUpsertion]) -> None:
    async def change(zookeeper: ZooKeeper, clock: Clock) -> None:
        with suppress(NodeExistsError):
            await zookeeper.create(Znode.CONFIG_CHANGES.path(), b"", make_path=True)
        await _change(ZooKeeperStore(zookeeper, clock), changes, StoreForm(has_tree=True))

    settings = ZooKeeperSettings(connect, create_chroot=True)
    work_on_zookeeper(settings, change, "the change was interrupted; run it again")
