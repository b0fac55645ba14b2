"""How many entries of the metadata the clients of an instance may create, which all brokers keep in memory.

The bounds are high: they keep a tenant from filling the memory of all. Topics have limits of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.controller_apis import build_refusal
from kafkacompat.security.principals import USER_PREFIX
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.handlers.context import RequestContext, Services
    from kafkacompat.metadata.image import MetadataImage
    from kafkacompat.wire.schema import Response

MOST_ENTRIES = 10_000
"""The most access rules of an instance; the same for users and quotas, for tokens, and for configs of groups."""
STEP_ENTRIES = 256

Count = Callable[["MetadataImage", str], "Iterable[int]"]
"""Returns how many entries each thing in the metadata adds to those of an instance, whose prefix is given."""
Refusing = Generator[None, None, "Response | None"]


def _count_rules(image: MetadataImage, prefix: str) -> Iterable[int]:
    table = image.acls
    return (
        len(table.rules_of(pattern)) if pattern.name.removeprefix(USER_PREFIX).startswith(prefix) else 0
        for pattern in table
    )


def _count_clients(image: MetadataImage, prefix: str) -> Iterable[int]:
    return (any(name is not None and name.startswith(prefix) for _, name in entity) for entity in image.clients)


def _count_tokens(image: MetadataImage, prefix: str) -> Iterable[int]:
    return (token.owner.name.startswith(prefix) for token in image.tokens.values())


def _count_groups(image: MetadataImage, prefix: str) -> Iterable[int]:
    return (kind == ResourceType.GROUP and name.startswith(prefix) for kind, name in image.configs)


def bound_rules(request: Any, context: RequestContext, services: Services) -> Refusing:
    """Refuse CreateAcls beyond the bound."""
    return _bound(_count_rules, "access rules", len(request.creations), request, context, services)


def bound_users(request: Any, context: RequestContext, services: Services) -> Refusing:
    """Refuse AlterUserScramCredentials beyond the bound."""
    return _bound(_count_clients, "users and quotas", len(request.upsertions), request, context, services)


def bound_quotas(request: Any, context: RequestContext, services: Services) -> Refusing:
    """Refuse AlterClientQuotas beyond the bound."""
    added = sum(any(not op.remove for op in entry.ops) for entry in request.entries)
    return _bound(_count_clients, "users and quotas", added, request, context, services)


def bound_tokens(request: Any, context: RequestContext, services: Services) -> Refusing:
    """Refuse CreateDelegationToken beyond the bound."""
    return _bound(_count_tokens, "delegation tokens", 1, request, context, services)


def bound_group_configs(request: Any, context: RequestContext, services: Services) -> Refusing:
    """Refuse changes of the configs of groups beyond the bound."""
    added = sum(
        resource.resource_type == ResourceType.GROUP and any(config.value is not None for config in resource.configs)
        for resource in request.resources
    )
    return _bound(_count_groups, "configs of groups", added, request, context, services)


def _bound(count: Count, kind: str, added: int, request: Any, context: RequestContext, services: Services) -> Refusing:
    """Count the instance's entries in steps, and refuse a request if there would be too many."""
    if not added:
        return None
    assert context.tenant is not None
    total = added
    for step, entries in enumerate(count(services.metadata.image, context.tenant.names.prefix), 1):
        total += entries
        if step % STEP_ENTRIES == 0:
            yield
    if total <= MOST_ENTRIES:
        return None
    reason = f"an instance has at most {MOST_ENTRIES} {kind}: remove some of them first"
    refusal: Response = build_refusal(request, KafkaError(ErrorCode.POLICY_VIOLATION, reason))
    return refusal
