"""Reading many nodes of ZooKeeper: a few requests at a time, repeated when the connection was lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from twisted.internet.defer import Deferred, FirstError, gatherResults

from kafkacompat.metadata.store import StoreEntry
from kafkacompat.zookeeper.client import NodeStat, NoNodeError, ZooKeeper
from kafkacompat.zookeeper.waiting import ConnectionWaiter, read_again

READS_AT_ONCE = 64
"""Requests under way: they keep a server busy, and the answers leave the reactor time for others."""

Value = TypeVar("Value")


class NodeReader:
    """Reads the nodes of *client* by path; its methods raise ZooKeeperError."""

    def __init__(self, client: ZooKeeper, connection: ConnectionWaiter) -> None:
        self._client = client
        self._connection = connection

    async def read_nodes(self, paths: Sequence[str]) -> dict[str, tuple[bytes, NodeStat]]:
        """Return value and versions of those nodes that exist."""
        nodes = await self._read_each(self._client.get, paths)
        return {path: node for path, node in nodes.items() if node is not None}

    async def read_entries(self, paths: Sequence[str]) -> dict[str, StoreEntry]:
        """Return the entries of those nodes that exist and have a value."""
        return _as_entries(await self.read_nodes(paths))

    async def list_children(self, paths: Sequence[str]) -> dict[str, list[str]]:
        """Return the paths of each node's children, in order; a missing node has none."""
        names = await self._read_each(self._client.children, paths)
        return {path: [join_path(path, name) for name in sorted(names[path] or ())] for path in paths}

    async def find_existing(self, paths: Sequence[str]) -> set[str]:
        """Return those paths that have a node."""
        stats = await self._read_each(self._client.exists, paths)
        return {path for path, stat in stats.items() if stat is not None}

    async def walk(self, folders: Sequence[str]) -> dict[str, StoreEntry]:
        """Return the entries of *folders* and of everything below them, those of a folder before its children's."""
        entries: dict[str, StoreEntry] = {}
        level: Sequence[str] = folders
        while level:
            nodes = await self.read_nodes(level)
            entries.update(_as_entries(nodes))
            children = await self.list_children([path for path, (_, stat) in nodes.items() if stat.children])
            level = [child for paths in children.values() for child in paths]
        return entries

    async def list_descendants(self, path: str, leaves: set[str]) -> list[str]:
        """Return the paths of all nodes below a node. The nodes at *leaves* have no children."""
        descendants: list[str] = []
        level = [path]
        while level:
            children = await self.list_children(level)
            below = [child for paths in children.values() for child in paths]
            descendants += below
            level = [child for child in below if child not in leaves]
        return descendants

    async def _read_each(self, read: Callable[[str], Deferred[Value]], paths: Sequence[str]) -> dict[str, Value | None]:
        """Read each path once, a few at a time; None for a node that does not exist. The first failure ends it."""
        results: dict[str, Value | None] = {}
        remaining = iter(paths)

        async def read_some() -> None:
            try:
                for path in remaining:
                    value = await self._read_one(read, path)
                    results[path] = value
            except BaseException:
                for _ in remaining:
                    pass
                raise

        workers = [Deferred.fromCoroutine(read_some()) for _ in range(min(len(paths), READS_AT_ONCE))]
        try:
            await gatherResults(workers, consumeErrors=True)
        except FirstError as problem:
            problem.subFailure.raiseException()
        return {path: results[path] for path in paths}

    async def _read_one(self, read: Callable[[str], Deferred[Value]], path: str) -> Value | None:
        try:
            return await read_again(lambda: read(path), self._connection)
        except NoNodeError:
            return None


def join_path(path: str, name: str) -> str:
    """Return the path of a node's child."""
    return f"{path.rstrip('/')}/{name}"


def _as_entries(nodes: Mapping[str, tuple[bytes, NodeStat]]) -> dict[str, StoreEntry]:
    """Return the nodes that have a value; those without one only hold others."""
    return {path: StoreEntry(value, stat.version) for path, (value, stat) in nodes.items() if value}
