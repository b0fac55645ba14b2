"""Access rules as tests write them."""

from __future__ import annotations

from kafkacompat.testing.errors import BrokerError

OPERATIONS = {
    "ALL": 2,
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
"""Kafka's names and numbers."""
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
DENY, ALLOW = 2, 3
LITERAL, PREFIXED = 3, 4


class Acl:
    """A rule: a user may do something with a resource, ``Acl("alice", "READ", "DESCRIBE", topic="orders")``.

    Exactly one resource is given: a topic, a group, a transactional id or the cluster. A name that ends in ``*`` is a prefix. With
    *deny* the rule forbids. The user ``*`` is everyone, ``ANONYMOUS`` a client without a user. Raises BrokerError.
    """

    def __init__(
        self,
        user: str,
        *operations: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        cluster: bool = False,
        deny: bool = False,
    ) -> None:
        self.principal = f"User:{user}"
        self.operations = [_read_operation(operation) for operation in operations]
        resources = [
            (kind, name)
            for kind, name in (
                (TOPIC, topic),
                (GROUP, group),
                (TRANSACTIONAL_ID, transactional_id),
                (CLUSTER, "kafka-cluster" if cluster else None),
            )
            if name is not None
        ]
        if not operations or len(resources) != 1:
            raise BrokerError(
                f"a rule of {user} has {len(operations)} operations and {len(resources)} resources: "
                'write Acl("alice", "READ", topic="orders")'
            )
        self.resource_type, name = resources[0]
        is_prefix = len(name) > 1 and name.endswith("*")
        self.pattern_type = PREFIXED if is_prefix else LITERAL
        self.name = name[:-1] if is_prefix else name
        self.permission = DENY if deny else ALLOW


def _read_operation(name: str) -> int:
    if name.upper() not in OPERATIONS:
        raise BrokerError(f"{name} is no operation of Kafka: give one of {', '.join(OPERATIONS)}")
    return OPERATIONS[name.upper()]
