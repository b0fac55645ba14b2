"""Access rules of instances: a request to delete rules never selects one that is not the instance's."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from kafkacompat.handlers.acl_requests import parse_filter
from kafkacompat.handlers.controller_apis import build_refusal
from kafkacompat.security.acls.model import ANY, AclResourceType, PatternType
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsFilterResult
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.handlers.context import RequestContext, Services
    from kafkacompat.security.acls.model import Acl
    from kafkacompat.security.acls.table import AclTable
    from kafkacompat.tenancy.tenant_view import TenantView
    from kafkacompat.wire.schema import Response

_RESOURCE_TYPES, _PATTERN_TYPES = frozenset(AclResourceType), frozenset(PatternType)
STEP_FILTERS = 64
MAX_WIDE_FILTERS = 10
"""Filters in one request that do not name a pattern: each is compared with all rules."""


def narrow_deletions(
    request: Any, context: RequestContext, services: Services
) -> Generator[None, None, Response | None]:
    """Replace each filter by exact filters of the instance's rules that it selects; `merge_deletions` joins their results."""
    wide = 0
    for count, wanted in enumerate(request.filters, 1):
        wide += not _names_pattern(wanted)
        if wide > MAX_WIDE_FILTERS:
            reason = f"at most {MAX_WIDE_FILTERS} filters of a request may lack a resource type, name or pattern type"
            refusal: Response = build_refusal(request, KafkaError(ErrorCode.POLICY_VIOLATION, reason))
            return refusal
        if count % STEP_FILTERS == 0:
            yield
    assert context.tenant is not None
    yield from _narrow(request, context.tenant, services.metadata.image.acls)
    return None


def _narrow(request: Any, tenant: TenantView, table: AclTable) -> Iterator[None]:
    sizes, filters = [], []
    for count, wanted in enumerate(request.filters, 1):
        group = yield from _expand(wanted, tenant, table)
        sizes.append(len(group))
        filters += group
        if count % STEP_FILTERS == 0:
            yield
    request.group_sizes, request.filters = sizes, filters


def merge_deletions(request: Any, response: Any, context: RequestContext, services: Services) -> Iterator[None]:
    """Return one result for each filter that the client has sent."""
    results, merged = iter(response.filter_results), []
    for count, size in enumerate(request.group_sizes, 1):
        merged.append(_merge(list(islice(results, size))))
        if count % STEP_FILTERS == 0:
            yield
    response.filter_results = merged


def _names_pattern(wanted: DeleteAclsFilter) -> bool:
    return (
        wanted.resource_type_filter in _RESOURCE_TYPES
        and wanted.pattern_type_filter in _PATTERN_TYPES
        and wanted.resource_name_filter is not None
    )


def _expand(
    wanted: DeleteAclsFilter, tenant: TenantView, table: AclTable
) -> Generator[None, None, list[DeleteAclsFilter]]:
    """Return at least one filter, so that there is a result; the handler rejects one that is not valid."""
    parsed = parse_filter(wanted)
    try:
        parsed.check()
    except KafkaError:
        return [wanted]
    names = tenant.acl_names
    selected = names.select_exact(parsed, table) if _names_pattern(wanted) else names.select(parsed, table)
    exact = []
    for acl in selected:
        if acl is not None:
            exact.append(_make_exact(acl))
        if acl is None or len(exact) % STEP_FILTERS == 0:
            yield
    return exact or [_make_void(tenant)]


def _make_exact(acl: Acl) -> DeleteAclsFilter:
    pattern, rule = acl
    return DeleteAclsFilter(
        resource_type_filter=pattern.resource_type,
        resource_name_filter=pattern.name,
        pattern_type_filter=pattern.pattern_type,
        principal_filter=rule.principal,
        host_filter=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def _make_void(tenant: TenantView) -> DeleteAclsFilter:
    """Return a filter that selects nothing: no cluster has such a name."""
    return DeleteAclsFilter(
        resource_type_filter=AclResourceType.CLUSTER,
        resource_name_filter=f"{tenant.names.prefix}*",
        pattern_type_filter=PatternType.LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )


def _merge(group: list[DeleteAclsFilterResult]) -> DeleteAclsFilterResult:
    failed = next((result for result in group if result.error_code), None)
    if failed is not None:
        return failed
    return DeleteAclsFilterResult(
        error_message=None, matching_acls=[matching for result in group for matching in result.matching_acls]
    )
