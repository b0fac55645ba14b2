"""Users, access rules and instances, created on brokers that run, in the thread of the brokers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import attrgetter
from random import SystemRandom
from typing import TYPE_CHECKING

from kafkacompat.config import ConfigError
from kafkacompat.config.instances import DELETING
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import make_user_entity
from kafkacompat.security.acls.model import Acl as AclWithPattern
from kafkacompat.security.acls.table import group_acls
from kafkacompat.tenancy.instance_changes import Changes, plan_creation, plan_difference
from kafkacompat.tenancy.instance_messages import encode_changes
from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.nodes import PATIENCE_S, Nodes
from kafkacompat.testing.security import HOST, ITERATIONS
from kafkacompat.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest
from kafkacompat.wire.apis.incremental_alter_configs import AlterConfigsResource, IncrementalAlterConfigsRequest
from kafkacompat.wire.errors import describe_code

if TYPE_CHECKING:
    from kafkacompat.metadata.image import MetadataImage
    from kafkacompat.testing.acls import Acl
    from kafkacompat.testing.security import ScramPassword
    from kafkacompat.wire.apis.create_acls import CreateAclsResponse

by_mechanism = attrgetter("mechanism")


async def create_users(nodes: Nodes, passwords: Sequence[ScramPassword]) -> None:
    """Set passwords for SCRAM; returns when each broker accepts them. Raises BrokerError."""
    for mechanism, hashed in groupby(sorted(passwords, key=by_mechanism), by_mechanism):
        upsertions = [
            ScramCredentialUpsertion(
                name=password.user,
                mechanism=mechanism,
                iterations=ITERATIONS,
                salt=password.salt,
                salted_password=password.salted_password,
            )
            for password in hashed
        ]
        response = await nodes.running[0].request(AlterUserScramCredentialsRequest(upsertions=upsertions))
        for result in response.results:
            if result.error_code:
                error = describe_code(result.error_code, result.error_message)
                raise BrokerError(f"user {result.user} cannot be created: {error}")
    wanted = {(make_user_entity(password.user), password.mechanism) for password in passwords}

    def has_all(image: MetadataImage) -> bool:
        return wanted <= {(entity, key) for entity, config in image.clients.items() for key in config.credentials}

    await _wait_for_all(nodes, has_all, "the users")


async def _wait_for_all(nodes: Nodes, is_known: Callable[[MetadataImage], bool], subject: str) -> None:
    """Wait until the metadata have reached all brokers of a cluster; raises BrokerError, which names the missing *subject*."""

    async def is_known_to_all() -> bool:
        return all(is_known(node.broker.metadata.image) for node in nodes.running)

    if not await nodes.wait_until(is_known_to_all, PATIENCE_S):
        raise BrokerError(f"{subject} have not reached all brokers after {PATIENCE_S:g} s")


async def create_acls(nodes: Nodes, acls: Sequence[Acl]) -> None:
    """Create access rules; returns when each broker knows them. Raises BrokerError."""
    creations = [
        AclCreation(
            resource_type=acl.pattern.resource_type,
            resource_name=acl.pattern.name,
            resource_pattern_type=acl.pattern.pattern_type,
            principal=rule.principal,
            host=rule.host,
            operation=rule.operation,
            permission_type=rule.permission,
        )
        for acl in acls
        for rule in acl.rules
    ]
    response: CreateAclsResponse = await nodes.running[0].request(CreateAclsRequest(creations=creations))
    for creation, result in zip(creations, response.results, strict=True):
        if result.error_code:
            rule = f"a rule of {creation.principal} for {creation.resource_name}"
            raise BrokerError(f"{rule} cannot be created: {describe_code(result.error_code, result.error_message)}")
    wanted = group_acls(AclWithPattern(acl.pattern, rule) for acl in acls for rule in acl.rules)

    def has_all(image: MetadataImage) -> bool:
        return all(rules.rules <= image.acls.rules_of(pattern).rules for pattern, rules in wanted.items())

    await _wait_for_all(nodes, has_all, "the access rules")


async def create_instances(nodes: Nodes, instances: Mapping[str, Mapping[str, str]]) -> None:
    """Create instances with their properties; returns when their listeners are bound. Raises BrokerError.

    An instance that the broker's folder has already keeps its data, and has these properties alone.
    """
    for name, properties in instances.items():
        known = nodes.running[0].broker.metadata.image.configs.get((ResourceType.INSTANCE, name))
        try:
            changes = plan_creation(properties, SystemRandom()) if known is None else _plan_reuse(known, properties)
        except ConfigError as problem:
            raise BrokerError(f"instance {name} cannot be created: {problem}") from None
        if not changes:
            continue
        resource = AlterConfigsResource(
            resource_type=ResourceType.INSTANCE, resource_name=name, configs=encode_changes(changes)
        )
        response = await nodes.running[0].request(IncrementalAlterConfigsRequest(resources=[resource]))
        (result,) = response.responses
        if result.error_code:
            raise BrokerError(
                f"instance {name} cannot be created: {describe_code(result.error_code, result.error_message)}"
            )
    listeners = nodes.running[0].broker.listeners

    async def are_bound() -> bool:
        return listeners.instances is not None and not listeners.list_unbound()

    if instances and not await nodes.wait_until(are_bound, PATIENCE_S):
        raise BrokerError(
            f"an instance cannot listen: {next(iter(listeners.list_unbound().values()), 'no reason is known')}"
        )


def _plan_reuse(known: Mapping[str, str], properties: Mapping[str, str]) -> Changes:
    if known.get("state") == DELETING:
        raise ConfigError("its folder has an instance of this name that is being deleted")
    return plan_difference(known, properties)


def find_free_ports(count: int) -> list[int]:
    """Return ports of this machine that no process uses now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for unbound in sockets:
            unbound.bind((HOST, 0))
        return [bound.getsockname()[1] for bound in sockets]
