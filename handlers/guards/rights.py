"""The rights that guards ask for, each an operation on a type of resource, and the error of a refusal."""

from __future__ import annotations

from typing import NamedTuple

from kafkacompat.security.acls.model import AclOperation as Operation
from kafkacompat.security.acls.model import AclResourceType as Kind
from kafkacompat.wire.errors import ErrorCode

ERRORS = {
    Kind.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    Kind.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    Kind.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    Kind.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Kind.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    Kind.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error of a refusal, by the type of the resource."""


class AccessCheck(NamedTuple):
    """A right that an API asks for: an operation on a type of resource."""

    operation: Operation
    kind: Kind

    @property
    def error(self) -> ErrorCode:
        """The error of a refusal."""
        return ERRORS[self.kind]


READ_TOPIC = AccessCheck(Operation.READ, Kind.TOPIC)
WRITE_TOPIC = AccessCheck(Operation.WRITE, Kind.TOPIC)
DESCRIBE_TOPIC = AccessCheck(Operation.DESCRIBE, Kind.TOPIC)
DESCRIBE_TOPIC_CONFIGS = AccessCheck(Operation.DESCRIBE_CONFIGS, Kind.TOPIC)
CREATE_TOPIC = AccessCheck(Operation.CREATE, Kind.TOPIC)
DELETE_TOPIC = AccessCheck(Operation.DELETE, Kind.TOPIC)

READ_GROUP = AccessCheck(Operation.READ, Kind.GROUP)
DESCRIBE_GROUP = AccessCheck(Operation.DESCRIBE, Kind.GROUP)
DELETE_GROUP = AccessCheck(Operation.DELETE, Kind.GROUP)

WRITE_TRANSACTION = AccessCheck(Operation.WRITE, Kind.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTION = AccessCheck(Operation.DESCRIBE, Kind.TRANSACTIONAL_ID)

DESCRIBE_CLUSTER = AccessCheck(Operation.DESCRIBE, Kind.CLUSTER)
ALTER_CLUSTER = AccessCheck(Operation.ALTER, Kind.CLUSTER)
ACT_FOR_CLUSTER = AccessCheck(Operation.CLUSTER_ACTION, Kind.CLUSTER)
CREATE_ANY_TOPIC = AccessCheck(Operation.CREATE, Kind.CLUSTER)
DELETE_ANY_TOPIC = AccessCheck(Operation.DELETE, Kind.CLUSTER)
WRITE_IDEMPOTENTLY = AccessCheck(Operation.IDEMPOTENT_WRITE, Kind.CLUSTER)

CREATE_TOKENS = AccessCheck(Operation.CREATE_TOKENS, Kind.USER)
