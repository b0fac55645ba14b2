"""AlterClientQuotas (key 49), v0-1: set and remove quotas of users, client ids and addresses.

v1     flexible

One invalid quota rejects its whole entity, and no other entity.
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.client_entities import Entity, make_entity
from kafkacompat.metadata.quota_changes import QuotaAlteration
from kafkacompat.wire.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    EntryResult,
)
from kafkacompat.wire.errors import KafkaError


def handle_alter_client_quotas(
    request: AlterClientQuotasRequest, context: RequestContext, services: Services
) -> Pending[AlterClientQuotasResponse]:
    """Change the quotas of every valid entity."""
    return answer_in_order(_alter_quotas(request, services))


async def _alter_quotas(request: AlterClientQuotasRequest, services: Services) -> AlterClientQuotasResponse:
    alterations = [_parse_alteration(entry) for entry in request.entries]
    outcomes: dict[Entity, KafkaError | None]
    try:
        outcomes = await services.controller.alter_client_quotas(alterations, validate_only=request.validate_only)
    except KafkaError as problem:
        outcomes = {alteration.entity: problem for alteration in alterations}
    return AlterClientQuotasResponse(entries=[_build_result(entity, problem) for entity, problem in outcomes.items()])


def _parse_alteration(entry: EntryData) -> QuotaAlteration:
    entity = make_entity((part.entity_type, part.entity_name) for part in entry.entity)
    return QuotaAlteration(entity, [(op.key, None if op.remove else op.value) for op in entry.ops])


def _build_result(entity: Entity, problem: KafkaError | None) -> EntryResult:
    entry = EntryResult(
        error_message=None, entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    )
    if problem is not None:
        entry.error_code, entry.error_message = problem.code, problem.detail
    return entry
