"""The tree of the memory ZooKeeper: nodes with versions and transaction ids, changed all at once or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kafkacompat.zookeeper.client import (
    ANY_VERSION,
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NodeStat,
    NoNodeError,
    NotEmptyError,
    Operation,
    Result,
    SetData,
    WatchKind,
    ZooKeeperError,
)
from kafkacompat.zookeeper.requests import parent_of

ROOT = "/"


class TreeEvent(NamedTuple):
    """A change of the node at an absolute path, or of its children."""

    kind: WatchKind
    path: str


class Transaction(NamedTuple):
    """Id, session and time of a change."""

    zxid: int
    session_id: int
    now_ms: int


class _Node:
    """A node. ``creations`` counts the children ever created: the number of the next sequence node."""

    __slots__ = ("children", "creations", "ctime_ms", "czxid", "mtime_ms", "mzxid", "owner", "value", "version")

    def __init__(self, value: bytes, owner: int, transaction: Transaction) -> None:
        self.value = value
        self.owner = owner
        self.version = 0
        self.czxid = self.mzxid = transaction.zxid
        self.ctime_ms = self.mtime_ms = transaction.now_ms
        self.children: dict[str, None] = {}
        self.creations = 0

    def stat(self) -> NodeStat:
        return NodeStat(
            self.version, self.czxid, self.mzxid, self.owner, self.ctime_ms, self.mtime_ms, len(self.children)
        )


class Tree:
    """All nodes by absolute path. The operations fail in the order of ZooKeeper's own checks."""

    def __init__(self) -> None:
        self.zxid = 0
        self._nodes = {ROOT: _Node(b"", 0, Transaction(0, 0, 0))}
        self._undo: list[Callable[[], object]] = []
        self._events: list[TreeEvent] = []

    def get(self, path: str) -> tuple[bytes, NodeStat]:
        """Read a node; raises NoNodeError."""
        node = self._node(path)
        return node.value, node.stat()

    def exists(self, path: str) -> NodeStat | None:
        """Read a node's versions, None if it is missing."""
        return self._nodes[path].stat() if path in self._nodes else None

    def children(self, path: str) -> list[str]:
        """Read the names of a node's children; raises NoNodeError."""
        return list(self._node(path).children)

    def contents(self) -> dict[str, bytes]:
        """Return all values by absolute path."""
        return {path: node.value for path, node in sorted(self._nodes.items())}

    def owned_by(self, session_id: int) -> list[str]:
        """Return the paths of a session's ephemeral nodes."""
        return [path for path, node in self._nodes.items() if node.owner == session_id]

    def apply(
        self, operations: Iterable[Operation], session_id: int, now_ms: int
    ) -> tuple[list[Result], list[TreeEvent]]:
        """Make all the operations or none, as one transaction; return the results, and the events in their order.

        Raises ZooKeeperError with ``operation_index``.
        """
        transaction = Transaction(self.zxid + 1, session_id, now_ms)
        self._undo, self._events = [], []
        results: list[Result] = []
        for index, operation in enumerate(operations):
            try:
                results.append(self._apply_one(operation, transaction))
            except ZooKeeperError as problem:
                problem.operation_index = index
                for undo in reversed(self._undo):
                    undo()
                raise
        self.zxid = transaction.zxid
        return results, self._events

    def _apply_one(self, operation: Operation, transaction: Transaction) -> Result:
        method: Callable[[Any, Transaction], Result] = _METHODS[type(operation)].__get__(self)
        return method(operation, transaction)

    def _create(self, operation: Create, transaction: Transaction) -> str:
        parent_path = parent_of(operation.path)
        parent = self._node(parent_path)
        path = f"{operation.path}{parent.creations:010d}" if operation.sequence else operation.path
        if path in self._nodes:
            raise NodeExistsError(f"the node {path} exists in ZooKeeper already")
        if parent.owner:
            raise ZooKeeperError(f"the node {path} cannot be created: its parent is ephemeral, so it has no children")
        name = path.rpartition("/")[2]
        self._nodes[path] = _Node(operation.value, transaction.session_id if operation.ephemeral else 0, transaction)
        parent.children[name] = None
        parent.creations += 1
        self._undo.append(lambda: self._remove(path, parent, creations=-1))
        self._events += [TreeEvent(WatchKind.CREATED, path), TreeEvent(WatchKind.CHILDREN, parent_path)]
        return path

    def _remove(self, path: str, parent: _Node, creations: int = 0) -> None:
        del self._nodes[path]
        del parent.children[path.rpartition("/")[2]]
        parent.creations += creations

    def _set(self, operation: SetData, transaction: Transaction) -> NodeStat:
        node = self._node_of_version(operation.path, operation.version)
        before = node.value, node.version, node.mzxid, node.mtime_ms
        node.value, node.version = operation.value, node.version + 1
        node.mzxid, node.mtime_ms = transaction.zxid, transaction.now_ms
        self._undo.append(lambda: self._restore(node, *before))
        self._events.append(TreeEvent(WatchKind.CHANGED, operation.path))
        return node.stat()

    def _restore(self, node: _Node, value: bytes, version: int, mzxid: int, mtime_ms: int) -> None:
        node.value, node.version, node.mzxid, node.mtime_ms = value, version, mzxid, mtime_ms

    def _delete(self, operation: Delete, _: Transaction) -> None:
        path = operation.path
        if path == ROOT:
            raise ZooKeeperError("the root of ZooKeeper's tree cannot be deleted")
        node = self._node_of_version(path, operation.version)
        if node.children:
            raise NotEmptyError(f"the node {path} has children, so it cannot be deleted")
        parent_path = parent_of(path)
        parent = self._nodes[parent_path]
        self._remove(path, parent)
        self._undo.append(lambda: self._put_back(path, node, parent))
        self._events += [TreeEvent(WatchKind.DELETED, path), TreeEvent(WatchKind.CHILDREN, parent_path)]

    def _put_back(self, path: str, node: _Node, parent: _Node) -> None:
        self._nodes[path] = node
        parent.children[path.rpartition("/")[2]] = None

    def _check(self, operation: Check, _: Transaction) -> None:
        self._node_of_version(operation.path, operation.version)

    def _node(self, path: str) -> _Node:
        if path not in self._nodes:
            raise NoNodeError(f"ZooKeeper has no node {path}")
        return self._nodes[path]

    def _node_of_version(self, path: str, version: int) -> _Node:
        node = self._node(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersionError(f"the node {path} has version {node.version}, not {version}")
        return node


_METHODS: dict[type[Operation], Any] = {
    Create: Tree._create,
    SetData: Tree._set,
    Delete: Tree._delete,
    Check: Tree._check,
}
