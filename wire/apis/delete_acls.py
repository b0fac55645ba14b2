"""DeleteAcls (key 31): remove access rules (ACLs). DescribeAcls explains the codes."""

from __future__ import annotations

from kafkacompat.wire.entities import ACL_RESOURCE, NAME_FILTER, PRINCIPAL, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class DeleteAclsFilter(Struct):
    """A filter for the rules to remove."""

    resource_type_filter: int = int8()  # 1: any
    resource_name_filter: str | None = string(nullable="0+", entity=NAME_FILTER)  # null: any
    # 1: any, 2: every pattern that covers the name, 3: literal, 4: prefixed
    pattern_type_filter: int = int8(versions="1+", default=3)
    principal_filter: str | None = string(nullable="0+", entity=NAME_FILTER)  # null: any
    host_filter: str | None = string(nullable="0+")  # null: any
    operation: int = int8()  # 1: any
    permission_type: int = int8()  # 1: any, 2: deny, 3: allow


class DeleteAclsRequest(Request, api_key=31, versions="0-3", flexible="2+"):
    """Remove the rules that match at least one of the filters."""

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsMatchingAcl(Struct):
    """One rule that matches, and the outcome of its removal."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    # 2: topic, 3: group, 4: cluster, 5: transactional id, 6: delegation token, 7: user (3+)
    resource_type: int = int8()
    resource_name: str = string(entity=ACL_RESOURCE)  # with a literal pattern, * covers all
    pattern_type: int = int8(versions="1+", default=3)  # 3: literal, 4: prefixed
    principal: str = string(entity=PRINCIPAL)  # type and name, as in User:alice; User:* covers all users
    host: str = string()  # the address of the client; *: any
    operation: int = int8()  # a code from 2 to 15
    permission_type: int = int8()  # 2: deny, 3: allow


class DeleteAclsFilterResult(Struct):
    """The outcome for one filter."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)


class DeleteAclsResponse(Response, api_key=31, versions="0-3", flexible="2+"):
    """The removed rules for each filter."""

    throttle_time_ms: int = int32()
    # one result per entry, in the order of the request
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)
