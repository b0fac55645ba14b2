"""What the clients check and do before they send a request: paths below a chroot, sizes, missing parents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred

from kafkacompat.zookeeper.client import Create, NodeExistsError, NoNodeError, Operation, SetData, ZooKeeperError

MAX_REQUEST_BYTES = 1_000_000
"""Size of the largest request in bytes. A server takes at most 1,048,575 (jute.maxbuffer), its headers included."""

_OPERATION_BYTES = 128
"""Upper bound of an operation's headers and ACL in bytes."""


def check_path(path: str) -> None:
    """Raise ZooKeeperError unless *path* may name a node."""
    if path == "/":
        return
    names = path.split("/")
    if names[0] or len(names) < 2 or any(name in ("", ".", "..") for name in names[1:]) or "\0" in path:
        raise ZooKeeperError(
            f"{path!r} is not the path of a node: it needs names, other than '.' and '..', after each slash"
        )


def parent_of(path: str) -> str:
    """Return the path of a node's parent; that of the root is the root."""
    return path.rpartition("/")[0] or "/"


class Chroot:
    """A folder of ZooKeeper's tree that a client takes for the root; "" is the whole tree."""

    def __init__(self, path: str) -> None:
        if path:
            check_path(path)
        self.path = path.rstrip("/")

    def absolute(self, path: str) -> str:
        """Return the absolute path; raises ZooKeeperError for a path that cannot name a node."""
        check_path(path)
        return (self.path + path).rstrip("/") or "/"

    def relative(self, path: str) -> str:
        """Return the client's path of an absolute one."""
        return path[len(self.path) :] or "/"

    def absolute_operation(self, operation: Operation) -> Operation:
        """Return the operation on the absolute path."""
        return operation._replace(path=self.absolute(operation.path))


def size_of(operation: Operation) -> int:
    """Return the most bytes that an operation, with an absolute path, takes in a request."""
    value = operation.value if isinstance(operation, Create | SetData) else b""
    return _OPERATION_BYTES + len(operation.path.encode()) + len(value)


def check_size(operations: Sequence[Operation]) -> None:
    """Raise ZooKeeperError for a request that a server would answer by closing the connection."""
    size_bytes = sum(map(size_of, operations))
    if size_bytes > MAX_REQUEST_BYTES:
        subject = operations[0].path if len(operations) == 1 else f"{len(operations)} operations"
        raise ZooKeeperError(
            f"{subject}: a request of {size_bytes} bytes is too large; ZooKeeper takes {MAX_REQUEST_BYTES}"
        )


async def create_with_parents(
    create: Callable[[str], Deferred[str]], create_parent: Callable[[str], Deferred[str]], path: str
) -> str:
    """Create a node, and before it those of its parents that are missing; raises the error of *create* otherwise."""
    try:
        return await create(path)
    except NoNodeError:
        await ensure_path(create_parent, parent_of(path))
        return await create(path)


async def ensure_path(create: Callable[[str], Deferred[str]], path: str) -> None:
    """Create a node and its parents unless they exist."""
    try:
        await create_with_parents(create, create, path)
    except NodeExistsError:
        return
