"""DeleteAcls (key 31): remove rules about who may do what. Numbers as in DescribeAcls."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class DeleteAclsFilter(Struct):
    """What the rules to remove have in common."""

    resource_type_filter: int = int8()  # 1: any
    resource_name_filter: str | None = string(nullable="0+")  # null: any
    # 1: any, 2: all that apply to the name, 3: literal, 4: prefixed
    pattern_type_filter: int = int8(versions="1+", default=3)
    principal_filter: str | None = string(nullable="0+")  # null: any
    host_filter: str | None = string(nullable="0+")  # null: any
    operation: int = int8()  # 1: any
    permission_type: int = int8()  # 1: any, 2: deny, 3: allow


class DeleteAclsRequest(Request, api_key=31, versions="0-3", flexible="2+"):
    """Remove the rules that pass any of these filters."""

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsMatchingAcl(Struct):
    """One rule that was found, and whether it is gone."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    # 2: topic, 3: group, 4: cluster, 5: transactional id, 6: delegation token, 7: user (3+)
    resource_type: int = int8()
    resource_name: str = string()  # *: all, if literal
    pattern_type: int = int8(versions="1+", default=3)  # 3: literal, 4: prefixed
    principal: str = string()  # type and name, User:alice; User:* is everybody
    host: str = string()  # address of the client; *: any
    operation: int = int8()  # 2 to 15
    permission_type: int = int8()  # 2: deny, 3: allow


class DeleteAclsFilterResult(Struct):
    """The outcome for one filter."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)


class DeleteAclsResponse(Response, api_key=31, versions="0-3", flexible="2+"):
    """Which rules are gone."""

    throttle_time_ms: int = int32()
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)  # in the order of the request
