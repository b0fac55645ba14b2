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

MAX_WIDE_FILTERS = 10
"""Filters in one request that do not name a pattern: each is compared with all rules."""


def narrow_deletions(request: Any, context: RequestContext, services: Services) -> Any:
    """Replace each filter by exact filters of the instance's rules that it selects; `merge_deletions` joins their results."""
    if sum(not _names_pattern(wanted) for wanted in request.filters) > MAX_WIDE_FILTERS:
        reason = f"at most {MAX_WIDE_FILTERS} filters of a request may lack a resource type, a name or a pattern type"
        return build_refusal(request, KafkaError(ErrorCode.POLICY_VIOLATION, reason))
    assert context.tenant is not None
    return _narrow(request, context.tenant, services.metadata.image.acls)


def _narrow(request: Any, tenant: TenantView, table: AclTable) -> Iterator[None]:
    groups = []
    for wanted in request.filters:
        groups.append((yield from _expand(wanted, tenant, table)))
    request.group_sizes = [len(group) for group in groups]
    request.filters = [exact for group in groups for exact in group]


def merge_deletions(request: Any, response: Any, context: RequestContext, services: Services) -> None:
    """Return one result for each filter that the client has sent."""
    results = iter(response.filter_results)
    response.filter_results = [_merge(list(islice(results, size))) for size in request.group_sizes]


def _names_pattern(wanted: DeleteAclsFilter) -> bool:
    return (
        wanted.resource_type_filter in set(AclResourceType)
        and wanted.pattern_type_filter in set(PatternType)
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
        if acl is None:
            yield
        else:
            exact.append(_make_exact(acl))
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
