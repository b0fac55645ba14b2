"""Access rules as tests write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.testing.errors import BrokerError

if TYPE_CHECKING:
    from kafkacompat.security.acls.model import AclOperation


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
        from kafkacompat.security.acls.model import (
            CLUSTER_NAME,
            WILDCARD,
            AccessRule,
            AclPattern,
            AclPermission,
            AclResourceType,
            PatternType,
        )

        given = {
            AclResourceType.TOPIC: topic,
            AclResourceType.GROUP: group,
            AclResourceType.TRANSACTIONAL_ID: transactional_id,
            AclResourceType.CLUSTER: CLUSTER_NAME if cluster else None,
        }
        resources = [(kind, name) for kind, name in given.items() if name is not None]
        if not operations or len(resources) != 1:
            raise BrokerError(
                f"a rule of {user} has {len(operations)} operations and {len(resources)} resources: "
                'write Acl("alice", "READ", topic="orders")'
            )
        kind, name = resources[0]
        for text in (user, name, *operations):
            if not isinstance(text, str):
                raise BrokerError(f"a rule has {text!r}, of type {type(text).__name__}: give a text")
        if len(name) > 1 and name.endswith(WILDCARD):
            self.pattern = AclPattern(kind, PatternType.PREFIXED, name[:-1])
        else:
            self.pattern = AclPattern(kind, PatternType.LITERAL, name)
        permission = AclPermission.DENY if deny else AclPermission.ALLOW
        self.rules = [
            AccessRule(f"User:{user}", WILDCARD, _read_operation(operation), permission) for operation in operations
        ]


def _read_operation(name: str) -> AclOperation:
    from kafkacompat.security.acls.model import AclOperation

    try:
        return AclOperation[name.upper()]
    except KeyError:
        known = ", ".join(operation.name for operation in AclOperation)
        raise BrokerError(f"{name} is no operation of Kafka: give one of {known}") from None
