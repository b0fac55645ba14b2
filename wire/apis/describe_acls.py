"""DescribeAcls (key 29): the access rules (ACLs).

The codes, which CreateAcls and DeleteAcls use as well (0: unknown; 1, in a filter: any)::

    resource type    2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user (version 3+, KIP-373)
    pattern type     2 match (in a filter: every rule that applies to the name), 3 literal, 4 prefixed (KIP-290)
    operation        2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster action,
                     10 describe configs, 11 alter configs, 12 idempotent write, 13 create tokens, 14 describe tokens,
                     15 two-phase commit (KIP-939)
    permission type  2 deny, 3 allow
"""

from __future__ import annotations

from kafkacompat.wire.entities import ACL_RESOURCE, NAME_FILTER, PRINCIPAL, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Request, api_key=29, versions="0-3", flexible="2+"):
    """Describe the rules that match the filter."""

    resource_type_filter: int = int8()  # a code of the table above; 1: any
    resource_name_filter: str | None = string(nullable="0+", entity=NAME_FILTER)  # null: any
    # a code of the table above; 1: any, 2: every pattern that covers the name; version 0: literal
    pattern_type_filter: int = int8(versions="1+", default=3)
    principal_filter: str | None = string(nullable="0+", entity=NAME_FILTER)  # null: any
    host_filter: str | None = string(nullable="0+")  # null: any
    operation: int = int8()  # a code of the table above; 1: any
    permission_type: int = int8()  # a code of the table above; 1: any


class AclDescription(Struct):
    """One rule."""

    principal: str = string(entity=PRINCIPAL)  # type and name, as in User:alice; User:* covers all users
    host: str = string()  # the address of the client; *: any
    operation: int = int8()  # a code of the table above
    permission_type: int = int8()  # a code of the table above


class DescribeAclsResource(Struct):
    """The rules for one resource, or for all resources that match one pattern."""

    resource_type: int = int8()  # a code of the table above
    resource_name: str = string(entity=ACL_RESOURCE)  # with a literal pattern, * covers all
    pattern_type: int = int8(versions="1+", default=3)  # a code of the table above
    acls: list[AclDescription] = array(AclDescription)


class DescribeAclsResponse(Response, api_key=29, versions="0-3", flexible="2+"):
    """The matching rules, grouped by resource."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
