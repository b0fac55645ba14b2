"""DescribeAcls (key 29): rules about who may do what.

The numbers, here and in CreateAcls and DeleteAcls (0 is unknown and 1, in a filter, any of them)::

    resource type    2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user (version 3+, KIP-373)
    pattern type     2 match (in a filter: every rule that applies to the name), 3 literal, 4 prefixed (KIP-290)
    operation        2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster action,
                     10 describe configs, 11 alter configs, 12 idempotent write, 13 create tokens, 14 describe tokens,
                     15 two-phase commit (KIP-939)
    permission type  2 deny, 3 allow
"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Request, api_key=29, versions="0-3", flexible="2+"):
    """Describe the rules that pass this filter."""

    resource_type_filter: int = int8()  # see above; 1: any
    resource_name_filter: str | None = string(nullable="0+")  # null: any
    # see above; 1: any, 2: all that apply to the name; version 0: literal
    pattern_type_filter: int = int8(versions="1+", default=3)
    principal_filter: str | None = string(nullable="0+")  # null: any
    host_filter: str | None = string(nullable="0+")  # null: any
    operation: int = int8()  # see above; 1: any
    permission_type: int = int8()  # see above; 1: any


class AclDescription(Struct):
    """One rule."""

    principal: str = string()  # type and name, User:alice; User:* is everybody
    host: str = string()  # address of the client; *: any
    operation: int = int8()  # see above
    permission_type: int = int8()  # see above


class DescribeAclsResource(Struct):
    """The rules for one resource, or for all that match one pattern."""

    resource_type: int = int8()  # see above
    resource_name: str = string()  # *: all, if literal
    pattern_type: int = int8(versions="1+", default=3)  # see above
    acls: list[AclDescription] = array(AclDescription)


class DescribeAclsResponse(Response, api_key=29, versions="0-3", flexible="2+"):
    """The rules found, resource by resource."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
