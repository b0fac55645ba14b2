"""The work of `kafkacompat instances`. Each command returns its exit code."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from random import SystemRandom
from typing import Any

import click

from kafkacompat.cli.columns import escape_control_characters
from kafkacompat.cli.command_config import read_command_config
from kafkacompat.cli.instances.adopting import KINDS, find_adopted
from kafkacompat.cli.instances.client import InstanceClient, InstanceError, NoInstanceError, Properties
from kafkacompat.cli.instances.contents import find_brokers, list_groups, measure_usage, read_contents
from kafkacompat.cli.remote.options import Target
from kafkacompat.cli.requests import BlockingConnection, NoResponseError, parse_address
from kafkacompat.cli.tables import make_console, make_table
from kafkacompat.config.instances import Instance, find_prefix
from kafkacompat.config.properties import ConfigError
from kafkacompat.tenancy import instance_changes

EXIT_DONE, EXIT_REFUSED, EXIT_UNUSABLE = 0, 1, 2
LOOK_EVERY_S = 0.2
MOST_LOOKS = 3000
"""Looks until a deletion that the command follows counts as stuck: ten minutes."""
LIMITS = ("topics", "partitions", "groups", "storage.bytes")
_NEVER_SET = threading.Event()


def _connect(target: Target) -> InstanceClient:
    """Connect to the first broker that answers; raises ValueError and NoResponseError."""
    addresses = [parse_address(server) for server in target.bootstrap.split(",")]
    return InstanceClient(addresses, partial(BlockingConnection, security=read_command_config(target.command_config)))


def _run(target: Target, work: Callable[[InstanceClient], None]) -> int:
    """Do the work of a command; what goes wrong is one sentence on standard error."""
    try:
        with _connect(target) as client:
            work(client)
    except NoResponseError as problem:
        return _refuse(f"no broker answers: {problem}", EXIT_UNUSABLE)
    except ValueError as problem:
        return _refuse(str(problem), EXIT_UNUSABLE)
    except InstanceError as problem:
        return _refuse(str(problem), EXIT_REFUSED)
    return EXIT_DONE


def _refuse(sentence: str, code: int) -> int:
    click.echo(escape_control_characters(f"kafkacompat: {sentence}"), err=True)
    return code


def _report(sentence: str) -> None:
    click.echo(escape_control_characters(sentence), err=True)


# Changes


def create(target: Target, name: str, given: Mapping[str, str], *, if_not_exists: bool, dry_run: bool) -> int:
    """Create an instance."""

    def work(client: InstanceClient) -> None:
        changes = instance_changes.plan_creation(given, SystemRandom())
        is_new = not (if_not_exists and name in client.list_names())
        if is_new:
            client.alter(name, changes, validate_only=True)
            _check_groups(client, find_prefix(name, given))
        if is_new and not dry_run:
            client.alter(name, changes)
            _report(f"Created instance {name}")
        cluster_id = changes[0].value if is_new else client.describe(name).get("cluster.id")
        if target.as_json:
            click.echo(json.dumps({"instance": name, "cluster.id": cluster_id, "created": is_new and not dry_run}))

    return _run(target, work)


def _check_groups(client: InstanceClient, prefix: str) -> None:
    """Raise InstanceError if a new instance would own existing groups by its prefix alone, and its deletion delete them."""
    groups = list_groups(client, read_contents(client, with_sizes=False))
    taken = next((group for group in groups if group.startswith(prefix)), None)
    if taken is not None:
        reason = f"name.prefix={prefix} is the beginning of the existing group {taken}"
        raise InstanceError(f"{reason}: choose another name.prefix, and adopt the group")


def alter(target: Target, name: str, added: Mapping[str, str], deleted: Sequence[str], *, dry_run: bool) -> int:
    """Change properties of an instance."""

    def work(client: InstanceClient) -> None:
        changes = instance_changes.plan_alteration(added, deleted)
        client.describe(name)
        client.alter(name, changes, validate_only=dry_run)
        if not dry_run:
            _report(f"Altered instance {name}")

    return _run(target, work)


def delete(target: Target, name: str, grace_ms: int) -> int:
    """Begin the deletion of an instance; without a grace period, return when it is gone."""

    def work(client: InstanceClient) -> None:
        client.describe(name)
        now_ms = int(time.time() * 1000)
        client.alter(name, instance_changes.plan_deletion(now_ms, grace_ms))
        if grace_ms == 0:
            _await_removal(client, name)
            _report(f"Deleted instance {name}")
            return
        ends = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime((now_ms + grace_ms) / 1000))
        _report(f"Instance {name} serves no client any more, and its data go at {ends}")

    return _run(target, work)


def _await_removal(client: InstanceClient, name: str) -> None:
    """Return when an instance is gone; raises InstanceError if that takes too long."""
    console = make_console()
    with console.status(f"Removing what {name} has") if console.is_terminal else nullcontext():
        for _ in range(MOST_LOOKS):
            try:
                client.describe(name)
            except NoInstanceError:
                return
            _NEVER_SET.wait(LOOK_EVERY_S)
    raise InstanceError(f"the removal of {name} is under way and takes long: see the log of the controller")


def restore(target: Target, name: str) -> int:
    """Bring back an instance that is being deleted."""

    def work(client: InstanceClient) -> None:
        instance = Instance(name, client.describe(name))
        try:
            changes = instance_changes.plan_restoration(instance, int(time.time() * 1000))
        except ConfigError as problem:
            raise InstanceError(str(problem)) from None
        client.alter(name, changes)
        _report(f"Restored instance {name}")

    return _run(target, work)


# Whitelists


def list_whitelist(target: Target, name: str) -> int:
    """Write the networks that may connect."""

    def work(client: InstanceClient) -> None:
        networks = Instance(name, client.describe(name)).list("whitelist")
        if target.as_json:
            click.echo(json.dumps({"instance": name, "whitelist": list(networks)}))
            return
        for network in networks:
            click.echo(escape_control_characters(network))
        if not networks:
            _report(f"The instance {name} has no whitelist: all may connect")

    return _run(target, work)


def change_whitelist(target: Target, name: str, action: str, networks: Sequence[str]) -> int:
    """Add, remove or set networks."""

    def work(client: InstanceClient) -> None:
        current = Instance(name, client.describe(name)).list("whitelist")
        client.alter(name, instance_changes.plan_whitelist(action, networks, current))
        _report(f"Changed the whitelist of instance {name}")

    return _run(target, work)


# Output


def list_all(target: Target) -> int:
    """Write all instances."""

    def work(client: InstanceClient) -> None:
        instances = client.describe_all()
        rows = [_describe_briefly(name, given) for name, given in instances.items()]
        if target.as_json:
            click.echo(json.dumps(rows))
            return
        if rows:
            make_console().print(make_table("", [{**row, "listeners": ",".join(row["listeners"])} for row in rows]))
        else:
            _report("There are no instances")

    return _run(target, work)


def _describe_briefly(name: str, given: Properties) -> dict[str, Any]:
    instance = Instance(name, given)
    return {
        "instance": name,
        "state": instance.string("state"),
        "cluster.id": instance.cluster_id,
        "listeners": list(instance.list("listeners")),
        "description": instance.string("description"),
    }


def describe(target: Target, name: str) -> int:
    """Write the properties of an instance, its brokers, and its usage."""

    def work(client: InstanceClient) -> None:
        given = client.describe(name)
        instance = Instance(name, given)
        contents = read_contents(client)
        usage = measure_usage(instance, contents, list_groups(client, contents))
        brokers = find_brokers(instance, contents)
        if target.as_json:
            description = {"instance": name, "properties": dict(given), "brokers": brokers, "usage": usage}
            click.echo(json.dumps({**description, "limits": _find_limits(instance)}))
            return
        console = make_console()
        where = f"on brokers {', '.join(map(str, brokers))}" if brokers else "without replicas"
        console.print(f"Instance {name}, {instance.string('state')}, {where}", highlight=False, markup=False)
        rows: list[dict[str, object]] = [{"property": option, "value": given[option]} for option in sorted(given)]
        console.print(make_table("Properties", rows))
        console.print(make_table("Usage", _list_usage(instance, usage)))

    return _run(target, work)


def _find_limits(instance: Instance) -> dict[str, int | None]:
    """Return the limits of an instance; None for no limit."""
    limits = {noun: instance.int(f"limit.{noun}") for noun in LIMITS}
    return {noun: None if limit < 0 else limit for noun, limit in limits.items()}


def _list_usage(instance: Instance, usage: Mapping[str, int]) -> list[dict[str, object]]:
    limits = _find_limits(instance)
    return [{"of": noun, "used": usage[noun], "limit": _show_limit(limits[noun])} for noun in LIMITS]


def _show_limit(limit: int | None) -> str:
    return "none" if limit is None else str(limit)


def show_usage(target: Target, name: str | None) -> int:
    """Write the usage of one instance or of all."""

    def work(client: InstanceClient) -> None:
        given_by_name = client.describe_all() if name is None else {name: client.describe(name)}
        contents = read_contents(client)
        groups = list_groups(client, contents)
        rows: list[dict[str, Any]] = []
        for instance in (Instance(instance_name, given) for instance_name, given in given_by_name.items()):
            usage, limits = measure_usage(instance, contents, groups), _find_limits(instance)
            rows.append({"instance": instance.name, "usage": usage, "limits": limits})
        if target.as_json:
            click.echo(json.dumps(rows))
            return
        if rows:
            make_console().print(make_table("", [_flatten(row) for row in rows]))
        else:
            _report("There are no instances")

    return _run(target, work)


def _flatten(row: Mapping[str, Any]) -> dict[str, object]:
    cells: dict[str, object] = {"instance": row["instance"]}
    for noun in LIMITS:
        limit = row["limits"][noun]
        cells[noun] = f"{row['usage'][noun]}" + ("" if limit is None else f" of {limit}")
    return cells


# Adoption


def adopt(target: Target, name: str, wanted: Mapping[str, Sequence[str]], *, dry_run: bool) -> int:
    """Give existing things of the cluster to an instance."""

    def work(client: InstanceClient) -> None:
        instances = {
            instance_name: Instance(instance_name, given) for instance_name, given in client.describe_all().items()
        }
        if name not in instances:
            raise NoInstanceError(name)
        adopted = find_adopted(client, wanted, instances)
        client.alter(name, instance_changes.plan_adoption(adopted), validate_only=dry_run)
        if target.as_json:
            click.echo(json.dumps({"instance": name, "adopted": adopted, "dry_run": dry_run}))
            return
        rows: list[dict[str, object]] = [
            {"kind": KINDS[option].noun, "name": name} for option, names in adopted.items() for name in names
        ]
        make_console().print(make_table("", rows))
        counts = ", ".join(f"{len(names)} {KINDS[option].nouns}" for option, names in adopted.items())
        _report(f"Instance {name} {'would adopt' if dry_run else 'has adopted'} {counts}")

    return _run(target, work)
