"""The operations that a client is authorized for, as numbers with one bit for each operation (KIP-430).

Without an authorizer these are all operations that a type of resource has.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkacompat.security.acls.model import AclOperation as Operation
from kafkacompat.security.acls.model import AclResourceType

OPERATIONS: dict[AclResourceType, tuple[Operation, ...]] = {
    AclResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    AclResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    AclResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations that a resource may be authorized for, by its type."""


def list_bits(kind: AclResourceType, is_allowed: Callable[[Operation], bool] = lambda operation: True) -> int:
    """Return the allowed operations of a type of resource."""
    return sum(1 << operation for operation in OPERATIONS[kind] if is_allowed(operation))


TOPIC_OPERATIONS = list_bits(AclResourceType.TOPIC)
CLUSTER_OPERATIONS = list_bits(AclResourceType.CLUSTER)
GROUP_OPERATIONS = list_bits(AclResourceType.GROUP)
