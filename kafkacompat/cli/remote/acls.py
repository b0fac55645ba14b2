"""`kafkacompat acls`: its commands and their options."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from kafkacompat.cli.remote.completion import complete_groups, complete_topics
from kafkacompat.cli.remote.options import Target, target_options


def _resource_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for resources; the command receives a list *resources* of them."""

    @wraps(function)
    def call_with_resources(
        target: Target,
        topics: tuple[str, ...],
        groups: tuple[str, ...],
        transactional_ids: tuple[str, ...],
        delegation_tokens: tuple[str, ...],
        user_principals: tuple[str, ...],
        is_for_cluster: bool,
        **options: Any,
    ) -> Any:
        from kafkacompat.cli.remote.administration.acl_options import list_resources

        resources = list_resources(
            topics=topics,
            groups=groups,
            transactional_ids=transactional_ids,
            delegation_tokens=delegation_tokens,
            user_principals=user_principals,
            is_for_cluster=is_for_cluster,
        )
        return function(target, resources=resources, **options)

    named: dict[str, Any] = {"multiple": True, "metavar": "NAME"}
    for option in (
        click.option("--user-principal", "user_principals", **named, help="A user, for delegation tokens."),
        click.option("--delegation-token", "delegation_tokens", **named, help="A delegation token."),
        click.option("--cluster", "is_for_cluster", is_flag=True, help="The cluster."),
        click.option("--transactional-id", "transactional_ids", **named, help="A transactional id; * is all."),
        click.option("--group", "groups", **named, shell_complete=complete_groups, help="A group; * is all."),
        click.option("--topic", "topics", **named, shell_complete=complete_topics, help="A topic; * is all."),
    ):
        call_with_resources = option(call_with_resources)
    return call_with_resources


def _pattern_option(default: str, *choices: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--resource-pattern-type",
        "pattern_type",
        type=click.Choice(choices, case_sensitive=False),
        default=default,
        show_default=True,
        help="How a name selects resources.",
    )


def _rule_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for principals, operations and roles; the command receives *grantees*, and the others by name."""

    @wraps(function)
    def call_with_grantees(
        target: Target,
        allowed: tuple[str, ...],
        denied: tuple[str, ...],
        allow_hosts: tuple[str, ...],
        deny_hosts: tuple[str, ...],
        **options: Any,
    ) -> Any:
        from kafkacompat.cli.remote.administration.acl_options import list_grantees

        return function(target, grantees=list_grantees(allowed, denied, allow_hosts, deny_hosts), **options)

    named: dict[str, Any] = {"multiple": True, "metavar": "TYPE:NAME"}
    host: dict[str, Any] = {"multiple": True, "metavar": "ADDRESS"}
    for option in (
        click.option("--idempotent", is_flag=True, help="IdempotentWrite on the cluster, as older brokers need it."),
        click.option("--consumer", is_flag=True, help="Read and Describe on topics, Read on groups."),
        click.option(
            "--producer", is_flag=True, help="Write, Describe and Create on topics, and for transactional ids."
        ),
        click.option(
            "--operation", "operations", multiple=True, metavar="OPERATION", help="Such as Read; by default All."
        ),
        click.option("--deny-host", "deny_hosts", **host, help="Address of the denied principals; by default all."),
        click.option("--allow-host", "allow_hosts", **host, help="Address of the allowed principals; by default all."),
        click.option("--deny-principal", "denied", **named, help="Principal that a rule denies, such as User:alice."),
        click.option("--allow-principal", "allowed", **named, help="Principal that a rule allows, such as User:alice."),
    ):
        call_with_grantees = option(call_with_grantees)
    return call_with_grantees


@click.group()
def acls() -> None:
    """List, add and remove access rules (ACLs), in the words of kafka-acls.

    The brokers need an authorizer, the property authorizer.class.name.

    The exit code of each command is 0 for success, 1 if the cluster refuses, and 2 if the options are not valid or no broker
    answers.
    """


@acls.command(name="list")
@target_options
@_resource_options
@_pattern_option("any", "any", "match", "literal", "prefixed")
@click.option("--principal", "principals", multiple=True, metavar="TYPE:NAME", help="Only rules about this principal.")
def list_acls(target: Target, resources: list[Any], pattern_type: str, principals: tuple[str, ...]) -> None:
    """List rules, all or those about some resources and principals.

    \b
    Examples:
      kafkacompat acls list --bootstrap-server localhost:9092
      kafkacompat acls list --topic orders --resource-pattern-type match --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import acls as work
    from kafkacompat.cli.remote.administration.acl_options import PATTERN_TYPES
    from kafkacompat.cli.remote.running import run_command

    run_command(target, work.list_rules, resources, PATTERN_TYPES[pattern_type], principals)


@acls.command()
@target_options
@_resource_options
@_pattern_option("literal", "literal", "prefixed")
@_rule_options
def add(
    target: Target,
    resources: list[Any],
    pattern_type: str,
    grantees: list[Any],
    operations: tuple[str, ...],
    producer: bool,
    consumer: bool,
    idempotent: bool,
) -> None:
    """Add rules: one for each resource, principal, host and operation.

    \b
    Examples:
      kafkacompat acls add --allow-principal User:alice --operation Read --topic orders --bootstrap-server localhost:9092
      kafkacompat acls add --allow-principal User:bob --producer --topic shop. --resource-pattern-type prefixed \\
        --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import acls as work
    from kafkacompat.cli.remote.administration.acl_options import PATTERN_TYPES, list_accesses
    from kafkacompat.cli.remote.running import run_command

    if not grantees:
        raise click.UsageError("name a principal: --allow-principal or --deny-principal")
    accesses = list_accesses(
        resources, operations, is_producer=producer, is_consumer=consumer, is_idempotent=idempotent
    )
    run_command(target, work.add_rules, accesses, PATTERN_TYPES[pattern_type], grantees)


@acls.command()
@target_options
@_resource_options
@_pattern_option("literal", "any", "match", "literal", "prefixed")
@_rule_options
@click.option("--force", is_flag=True, help="Remove the rules of all principals without a question, if none is named.")
def remove(
    target: Target,
    resources: list[Any],
    pattern_type: str,
    grantees: list[Any],
    operations: tuple[str, ...],
    producer: bool,
    consumer: bool,
    idempotent: bool,
    force: bool,
) -> None:
    """Remove the rules about resources, principals, hosts and operations, and show them.

    With a principal, the command removes the rules that `acls add` adds with the same options: by default those of the operation All
    and of the host *. Without a principal, it removes the rules of all principals and hosts, by default of all operations. At a
    terminal it asks before; elsewhere it needs --force.

    \b
    Examples:
      kafkacompat acls remove --allow-principal User:alice --operation Read --topic orders --bootstrap-server localhost:9092
      kafkacompat acls remove --topic orders --force --bootstrap-server localhost:9092
    """
    from kafkacompat.cli.remote.administration import acls as work
    from kafkacompat.cli.remote.administration.acl_options import PATTERN_TYPES, list_accesses
    from kafkacompat.cli.remote.running import run_command
    from kafkacompat.security.acls.model import ANY, AclOperation

    accesses = list_accesses(
        resources,
        operations,
        is_producer=producer,
        is_consumer=consumer,
        is_idempotent=idempotent,
        # As kafka-acls: the operation of a named principal's rules is All by default.
        without_operation=AclOperation.ALL if grantees else ANY,
    )
    if not grantees and not force:
        _confirm_removal()
    run_command(target, work.remove_rules, accesses, PATTERN_TYPES[pattern_type], grantees)


def _confirm_removal() -> None:
    """Ask at a terminal whether to remove the rules of all principals; raises click.UsageError elsewhere, and click.Abort."""
    if not sys.stdin.isatty():
        raise click.UsageError("name the principals, or give --force to remove the rules of all principals")
    click.confirm("Remove the rules of all principals for these resources?", abort=True, err=True)
