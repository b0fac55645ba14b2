"""Kafka's command ``kafka-acls``, as far as suites use it: what it adds to a broker, and removes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from kafkacompat.security.acls.model import CLUSTER_NAME, AclOperation, AclPermission, AclResourceType, PatternType
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest

TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
CONVENIENCE = {
    "producer": ((TOPIC, AclOperation.WRITE), (TOPIC, AclOperation.DESCRIBE), (TOPIC, AclOperation.CREATE)),
    "consumer": ((TOPIC, AclOperation.READ), (TOPIC, AclOperation.DESCRIBE), (GROUP, AclOperation.READ)),
}
"""What the options --producer and --consumer stand for."""


def build_request(arguments: Sequence[str]) -> CreateAclsRequest | DeleteAclsRequest | None:
    """Return the request that the command sends; None for --list."""
    options, _ = _build_parser().parse_known_args(arguments)
    if options.list:
        return None
    creations = list(_list_rules(options))
    if options.add:
        return CreateAclsRequest(creations=creations)
    return DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=rule.resource_type,
                resource_name_filter=rule.resource_name,
                principal_filter=rule.principal,
                host_filter=rule.host,
                operation=rule.operation,
                permission_type=rule.permission_type,
            )
            for rule in creations
        ]
    )


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in ("add", "remove", "list", "cluster", *CONVENIENCE):
        parser.add_argument(f"--{flag}", action="store_true")
    for name in ("topic", "group", "transactional-id", "allow-principal", "deny-principal"):
        parser.add_argument(f"--{name}")
    for name, default in (("allow-host", "*"), ("deny-host", "*"), ("operation", "ALL")):
        parser.add_argument(f"--{name}", default=default)
    return parser


def _list_rules(options: argparse.Namespace) -> Iterator[AclCreation]:
    resources = {
        TOPIC: options.topic,
        GROUP: options.group,
        AclResourceType.TRANSACTIONAL_ID: options.transactional_id,
        AclResourceType.CLUSTER: CLUSTER_NAME if options.cluster else None,
    }
    wanted = [pair for flag, pairs in CONVENIENCE.items() if getattr(options, flag) for pair in pairs]
    if not wanted:
        wanted = [(kind, AclOperation[options.operation.upper()]) for kind in resources]
    principals = (
        (options.allow_principal, options.allow_host, AclPermission.ALLOW),
        (options.deny_principal, options.deny_host, AclPermission.DENY),
    )
    for principal, host, permission in principals:
        for kind, operation in wanted:
            if principal is not None and resources[kind] is not None:
                yield AclCreation(
                    resource_type=kind,
                    resource_name=resources[kind],
                    resource_pattern_type=PatternType.LITERAL,
                    principal=principal,
                    host=host,
                    operation=operation,
                    permission_type=permission,
                )
