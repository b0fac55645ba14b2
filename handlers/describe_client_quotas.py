"""DescribeClientQuotas (key 48), v0-1: the quotas of the entities that match a filter.

v1     flexible

Each component of the filter selects one type of entity; with `strict` a matching entity has no further types.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.client_entities import CLIENT_ID, IP, USER, Entity
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError


class MatchType(IntEnum):
    """How a component's `match` applies."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class _QuotaFilter(NamedTuple):
    """The selected entity types, each with a required name (None is the default entity) or with any name."""

    named: dict[str, str | None]
    any_name: set[str]
    strict: bool

    def matches(self, entity: Entity) -> bool:
        names = dict(entity)
        if not self.any_name <= names.keys() or not self.named.items() <= names.items():
            return False
        return not self.strict or len(names) == len(self.named) + len(self.any_name)


def handle_describe_client_quotas(
    request: DescribeClientQuotasRequest, context: RequestContext, services: Services
) -> DescribeClientQuotasResponse | Pending[DescribeClientQuotasResponse]:
    """Describe the matching entities, or return the filter's error."""
    try:
        wanted = _parse_filter(request)
    except KafkaError as problem:
        return DescribeClientQuotasResponse(error_code=problem.code, error_message=problem.detail, entries=None)
    return answer_in_order(_describe_entities(wanted, context, services))


async def _describe_entities(
    wanted: _QuotaFilter, context: RequestContext, services: Services
) -> DescribeClientQuotasResponse:
    clients = services.metadata.image.clients.items()
    return DescribeClientQuotasResponse(
        entries=[
            _build_entry(entity, config.quotas)
            async for entity, config in yield_in_turns(services.clock, clients)
            if config.quotas and _selects(wanted, entity, context)
        ]
    )


def _selects(wanted: _QuotaFilter, entity: Entity, context: RequestContext) -> bool:
    """Return whether a client requests an entity. The clients of an instance have other names for its entities."""
    if context.tenant is None:
        return wanted.matches(entity)
    own = context.tenant.quota_names.find_own(entity)
    return own is not None and wanted.matches(own)


def _build_entry(entity: Entity, quotas: Mapping[str, float]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[ValueData(key=key, value=value) for key, value in sorted(quotas.items())],
    )


def _parse_filter(request: DescribeClientQuotasRequest) -> _QuotaFilter:
    """Parse the components; raises KafkaError INVALID_REQUEST, or UNSUPPORTED_VERSION for an unknown type."""
    wanted = _QuotaFilter({}, set(), request.strict)
    for component in request.components:
        _check_type(component, wanted)
        if _parse_match_type(component) == MatchType.ANY:
            wanted.any_name.add(component.entity_type)
        else:
            wanted.named[component.entity_type] = component.match
    kinds = wanted.named.keys() | wanted.any_name
    if IP in kinds and len(kinds) > 1:
        raise _build_error(f"a filter by {IP} cannot be combined with one by {USER} or {CLIENT_ID}")
    return wanted


def _check_type(component: ComponentData, wanted: _QuotaFilter) -> None:
    kind = component.entity_type
    if not kind:
        raise _build_error("a component of the filter has an empty type")
    if kind in wanted.named or kind in wanted.any_name:
        raise _build_error(f"the filter has two components for the type {kind}")
    if kind not in (USER, CLIENT_ID, IP):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"'{kind}' is not one of {USER}, {CLIENT_ID} and {IP}")


def _parse_match_type(component: ComponentData) -> MatchType:
    if component.match_type not in set(MatchType):
        raise _build_error(
            f"{component.match_type} is no match type: {', '.join(f'{m:d} is {m.name}' for m in MatchType)}"
        )
    kind = MatchType(component.match_type)
    if (kind == MatchType.EXACT) == (component.match is None):
        needs = "needs a name" if kind == MatchType.EXACT else f"cannot have the name '{component.match}'"
        raise _build_error(f"a filter for {component.entity_type} that matches {kind.name} {needs}")
    return kind


def _build_error(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
