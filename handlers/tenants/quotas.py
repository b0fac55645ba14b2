"""Client quotas of instances: those of users and client ids; the quotas of addresses are the operator's."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

from kafkacompat.handlers.tenants.bounds import bound_quotas
from kafkacompat.metadata.client_entities import CLIENT_ID, IP, USER
from kafkacompat.wire.apis.alter_client_quotas import (
    AlterClientQuotasResponse,
    EntityData,
    EntryResult,
)
from kafkacompat.wire.apis.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.handlers.context import RequestContext, Services
    from kafkacompat.wire.schema import Response

STEP_ENTRIES = 64
NO_ADDRESSES = "an instance has no quotas of addresses: the operator of the cluster sets them"


def refuse_described_addresses(
    request: DescribeClientQuotasRequest, context: RequestContext, services: Services
) -> Generator[None, None, Response | None]:
    """Refuse a request for the quotas of addresses."""
    for count, component in enumerate(request.components, 1):
        if component.entity_type == IP:
            return DescribeClientQuotasResponse(
                error_code=ErrorCode.INVALID_REQUEST, error_message=NO_ADDRESSES, entries=None
            )
        if count % STEP_ENTRIES == 0:
            yield
    return None


def refuse_altered_addresses(
    request: Any, context: RequestContext, services: Services
) -> Generator[None, None, Response | None]:
    """Leave only users and client ids in a request; `add_refused` answers the other entities."""
    kept = []
    request.refused = []
    for count, entry in enumerate(request.entries, 1):
        if any(part.entity_type == IP for part in entry.entity):
            request.refused.append(_refuse(entry))
        else:
            kept.append(entry)
        if count % STEP_ENTRIES == 0:
            yield
    request.entries = kept
    if request.refused and not kept:
        return AlterClientQuotasResponse(entries=request.refused)
    return (yield from bound_quotas(request, context, services))


def _refuse(entry: Any) -> EntryResult:
    return EntryResult(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=NO_ADDRESSES,
        entity=[EntityData(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity],
    )


def add_refused(request: Any, response: Any, context: RequestContext, services: Services) -> Iterator[None]:
    """Add the answers to the entities that `refuse_altered_addresses` has left out."""
    for count, entry in enumerate(response.entries, 1):
        if entry.error_message:
            entry.error_message = _name_defaults(entry.error_message)
        if count % STEP_ENTRIES == 0:
            yield
    response.entries.extend(request.refused)


def _name_defaults(text: str) -> str:
    """Name the default entities in a message: without the prefix nothing is left of their names."""
    for kind in (USER, CLIENT_ID):
        text = text.replace(f"{kind}  ", f"{kind} <default> ")
    return text
