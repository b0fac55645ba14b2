"""Which nodes other clients may read or change where zookeeper.set.acl is true: the rules of Kafka with ZooKeeper."""

from __future__ import annotations

from enum import Enum, auto

_OPEN = "/consumers"
"""Consumers of Kafka 0.8 write below this node themselves."""

_PRIVATE = ("/config/users", "/config/brokers", "/config/instances", "/delegation_token/tokens")
"""Beginnings of the paths of nodes that may hold secrets."""


class NodeAccess(Enum):
    """What clients other than the node's creator may do."""

    OPEN = auto()
    """Everything."""
    READABLE = auto()
    """Read."""
    PRIVATE = auto()
    """Nothing."""


def access_of(path: str) -> NodeAccess:
    """Return the access to a node; *path* is relative to the chroot."""
    if path == _OPEN:
        return NodeAccess.OPEN
    return NodeAccess.PRIVATE if path.startswith(_PRIVATE) else NodeAccess.READABLE
