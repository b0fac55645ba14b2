"""CreateAcls (key 30): add access rules (ACLs). DescribeAcls explains the codes."""

from __future__ import annotations

from kafkacompat.wire.entities import ACL_RESOURCE, PRINCIPAL, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class AclCreation(Struct):
    """One rule to add."""

    # 2: topic, 3: group, 4: cluster, 5: transactional id, 6: delegation token, 7: user (3+)
    resource_type: int = int8()
    resource_name: str = string(
        entity=ACL_RESOURCE
    )  # with a literal pattern, * covers all; the cluster is kafka-cluster
    resource_pattern_type: int = int8(versions="1+", default=3)  # 3: literal, 4: prefixed
    principal: str = string(entity=PRINCIPAL)  # type and name, as in User:alice; User:* covers all users
    host: str = string()  # the address of the client; *: any
    operation: int = int8()  # a code from 2 to 15
    permission_type: int = int8()  # 2: deny, 3: allow


class CreateAclsRequest(Request, api_key=30, versions="0-3", flexible="2+"):
    """Add the given rules."""

    creations: list[AclCreation] = array(AclCreation)


class AclCreationResult(Struct):
    """The outcome for one rule."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)


class CreateAclsResponse(Response, api_key=30, versions="0-3", flexible="2+"):
    """The outcome for each rule."""

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)  # one result per entry, in the order of the request
